// What the kubelet and Prometheus ask the operator.

export interface HealthView {
  /** First lists are there. */
  readonly isFilled: boolean
  /** Kinds whose cache was not heard of for too long, or not at all yet. */
  readonly stale: readonly string[]
  /** Who leads is known. */
  readonly isLeaseKnown: boolean
}

export interface HealthAnswer {
  readonly status: number
  readonly body: string
}

/** Ready is who sees what there is; whether it leads does not matter. */
export function readiness({ isFilled, stale, isLeaseKnown }: HealthView): HealthAnswer {
  const problems = [
    ...(isFilled ? [] : [`the caches are not filled yet: ${stale.join(', ')}`]),
    ...(isFilled && stale.length > 0 ? [`nothing was heard of ${stale.join(', ')} for too long`] : []),
    ...(isLeaseKnown ? [] : ['it is not known who leads']),
  ]
  return problems.length === 0
    ? { status: 200, body: 'ready\n' }
    : { status: 503, body: `not ready: ${problems.join('; ')}\n` }
}
