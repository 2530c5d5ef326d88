// Sees what a task gives out, and when: a sink without transactions. After a stop with a savepoint nothing may have come out of the tasks
// that took it which lies behind its barrier (scenarios.md R20 a).

import type { Sink, SinkContext } from '../../connectors/contract.ts'
import type { Attempt } from '../../base/ids.ts'
import type { Entry } from '../flows/flow.ts'
import type { SimProcess } from '../process.ts'

interface Life {
  readonly attempt: Attempt
  /** Number of the newest record of each split. */
  readonly newest: Map<number, number>
}

export class Witness {
  /** The newest attempt of each subtask. */
  readonly #lives = new Map<number, Life>()
  readonly #given = new Set<string>()
  readonly #repeated: string[] = []

  sink(process: SimProcess): Sink<Entry> {
    return {
      name: 'witness',
      createWriter: (context) => {
        const life = this.#begin(context)
        return {
          open: async () => undefined,
          write: ({ split, n }) => {
            if (!process.alive) return
            life.newest.set(split, Math.max(n, life.newest.get(split) ?? -1))
            const record = `${n} of split ${split}`
            if (this.#given.has(record)) this.#repeated.push(record)
            this.#given.add(record)
          },
          prepareCommit: async () => [],
          close: () => undefined,
        }
      },
    }
  }

  /** Of a job in which nothing went back to a restore point: each record came out once, without any transaction. */
  judgeRepeats(): string[] {
    const { length } = this.#repeated
    if (length === 0) return []
    return [`${length} records came out twice though nothing restarted: ${this.#repeated.slice(0, 5).join('; ')}`]
  }

  judge(readOf: (split: number) => number): string[] {
    const leaked: string[] = []
    // Every start runs under an incarnation of its own.
    const last = Math.max(...[...this.#lives.values()].map(({ attempt }) => attempt.incarnation))
    for (const [subtask, { attempt, newest }] of this.#lives) {
      if (attempt.incarnation !== last) continue
      for (const [split, n] of newest)
        if (n >= readOf(split))
          leaked.push(
            `subtask ${subtask} gave out record ${n} of split ${split}, behind the savepoint at ${readOf(split)}`,
          )
    }
    return leaked.slice(0, 5)
  }

  #begin({ task: { attempt, subtask } }: SinkContext): Life {
    const known = this.#lives.get(subtask)
    const life = { attempt, newest: new Map<number, number>() }
    if (known === undefined || isNewer(attempt, known.attempt)) this.#lives.set(subtask, life)
    return life
  }
}

function isNewer(attempt: Attempt, other: Attempt): boolean {
  return attempt.incarnation === other.incarnation
    ? attempt.number > other.number
    : attempt.incarnation > other.incarnation
}
