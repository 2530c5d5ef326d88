// HEAD as the model world of the tests has it: protocol.md 2 in a few lines.

import type { CoordinatorFact, RecordedRestorePoint } from './contract.ts'

export interface Manifest {
  readonly id: number
  readonly kind: 'checkpoint' | 'savepoint'
  readonly start: number
  readonly path: string
}

export interface Head {
  start: number
  end: CoordinatorFact['end']
  restoredFrom: Manifest | undefined
  completed: Manifest[]
  stoppedWith: Manifest | undefined
  unconfirmed: boolean
  parallelism: number
  rescaledTo: number | undefined
  nextId: number
  results: Record<string, CoordinatorFact['requests'][string] & { readonly manifest?: Manifest }>
}

export function manifestOf(head: Head): Manifest | undefined {
  return head.stoppedWith ?? head.completed.findLast(({ start }) => start === head.start) ?? head.restoredFrom
}

export function manifestAt(path: string, head: Head | undefined): Manifest {
  const known = [...(head?.completed ?? []), head?.stoppedWith, head?.restoredFrom].find(
    (manifest) => manifest?.path === path,
  )
  return known ?? { id: 1, kind: 'savepoint', start: 0, path }
}

export function restorePointOf(head: Head): Omit<RecordedRestorePoint, 'readAt'> {
  const manifest = manifestOf(head)
  const { start, unconfirmed } = head
  if (manifest === undefined) return { kind: 'empty', start, unconfirmed }
  return { kind: manifest.kind, path: manifest.path, id: manifest.id, madeBy: manifest.start, start, unconfirmed }
}
