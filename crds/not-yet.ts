// Fields of StreamJob whose engine part comes later. They are not in the schema; naming one is answered by "not yet", not by "unknown".

export interface NotYet {
  readonly path: readonly string[]
  /** What the manifest can say instead. */
  readonly instead: string
}

export interface LaterField extends NotYet {
  /** Which values are meant; by default any. */
  readonly values?: (value: unknown) => boolean
}

const leaveOut = 'leave it out'

export const laterFields: readonly LaterField[] = [
  { path: ['spec', 'checkpointing', 'unaligned'], instead: `${leaveOut}; checkpoints are aligned` },
  { path: ['spec', 'checkpointing', 'alignedTimeout'], instead: `${leaveOut}; checkpoints are aligned` },
  {
    path: ['spec', 'checkpointing', 'maxConcurrent'],
    values: (value) => typeof value === 'number' && value > 1,
    instead: 'use 1',
  },
  { path: ['spec', 'stateBackend', 'type'], values: (value) => value === 'rocksdb', instead: 'use heap' },
  { path: ['spec', 'localRecovery'], instead: leaveOut },
  { path: ['spec', 'restoreMode'], values: (value) => value === 'claim', instead: 'use no-claim' },
  {
    path: ['spec', 'failoverStrategy'],
    values: (value) => value === 'individual' || value === 'none',
    instead: 'use region or full',
  },
]

/** Those that the document names, each with what it says. */
export function laterFieldsOf(document: unknown): (NotYet & { readonly value: unknown })[] {
  return laterFields.flatMap(({ path, instead, values = () => true }) => {
    const value = at(document, path)
    return value !== undefined && values(value) ? [{ path, instead, value }] : []
  })
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[name] : undefined,
    value,
  )
}
