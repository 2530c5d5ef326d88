// What is outside of the job whose snapshots lie in tests/golden/v2: how far its sources may read, a service, and what its sinks gave out.

import { sequence } from '../../runtime/connectors/api.ts'
import type { NumberedSource, SequenceRecord } from '../../runtime/connectors/api.ts'
import type { Committed } from '../support/holding-sink.ts'

export const [splits, perSplit, stepMs] = [2, 12, 1_000]

export class Outside {
  /** Whether the service answers for whatever it is asked; else for what came before this number. */
  answersBelow = 3
  /** What the subtasks of a job that restores nothing begin with. */
  readonly label: string
  readonly committed: Committed = new Map()
  readonly #waiting: (() => void)[] = []
  readonly #readers = new Set<() => void>()
  #limit = 0

  constructor(label: string) {
    this.label = label
  }

  /** Records of each split that may be read. */
  get limit(): number {
    return this.#limit
  }

  set limit(limit: number) {
    this.#limit = limit
    for (const wake of this.#readers) wake()
  }

  /** Wakes a reader when the limit changes; gives how it leaves. */
  join(wake: () => void): () => void {
    this.#readers.add(wake)
    return () => void this.#readers.delete(wake)
  }

  async ask(n: number): Promise<void> {
    if (n >= this.answersBelow) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  answerAll(): void {
    this.answersBelow = Infinity
    for (const answer of this.#waiting.splice(0)) answer()
  }
}

/** Its readers stop where they may read no further, each of its splits at the same record. */
export function limitedSequence(outside: Outside): NumberedSource<SequenceRecord> {
  const source = sequence({ splits, perSplit, stepMs })
  return {
    ...source,
    createReader: (context) => {
      const reader = source.createReader(context)
      const leave = outside.join(() => context.wake())
      // A checkpoint id is nothing that this snapshot depends on.
      const isHeld = (): boolean => {
        const owned = reader.snapshot(0 as Parameters<typeof reader.snapshot>[0])
        const read = owned.reduce((sum, { next }) => sum + next, 0)
        // They take turns.
        return owned.length > 0 && read >= outside.limit * owned.length
      }
      return {
        start: () => reader.start(),
        addSplits: (added) => reader.addSplits(added),
        noMoreSplits: () => reader.noMoreSplits(),
        poll: (output) => (isHeld() ? 'nothing' : reader.poll(output)),
        snapshot: (checkpoint) => reader.snapshot(checkpoint),
        ownedSplits: () => reader.ownedSplits(),
        hasPending: (split) => reader.hasPending(split),
        close() {
          leave()
          return reader.close()
        },
      }
    },
  }
}
