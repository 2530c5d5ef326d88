// How manifests write durations and Kubernetes' quantities: the one place that takes them apart.

import { z } from 'zod'

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const DURATION = /^(\d+)(ms|s|m|h|d)$/

/** `500ms`, `10s`, `10m`, `6h`, `7d`; gives ms. */
export const duration = durationFrom(0)

/** One that cannot be nothing. */
export const positiveDuration = durationFrom(1)

function durationFrom(leastMs: 0 | 1) {
  return z
    .string({ error: ({ input }) => (input === undefined ? undefined : durationError(input)) })
    .regex(DURATION, { error: ({ input }) => durationError(input) })
    .transform((text, context) => {
      const ms = durationMs(text)
      if (Number.isSafeInteger(ms) && ms >= leastMs) return ms
      context.addIssue({
        code: 'custom',
        message: leastMs > ms ? 'must be longer than nothing' : 'is too long',
        input: text,
      })
      return z.NEVER
    })
}

function durationMs(text: string): number {
  const [, count, unit] = DURATION.exec(text)!
  return Number(count) * unitsMs[unit!]!
}

function durationError(input: unknown): string {
  return `is ${JSON.stringify(input)}; a duration is a whole number and ms, s, m, h or d, such as 10s`
}

const noQuantity = 'must be an amount, such as 500m, 2 or 512Mi'

/** As the API server takes amounts of memory and processors: `512Mi`, `1`, `500m`. Kept as written. */
export const quantity = z.union(
  [
    z.number().nonnegative(),
    z.string().regex(/^\d+(\.\d+)?([eE][+-]?\d+|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$/, noQuantity),
  ],
  noQuantity,
)
