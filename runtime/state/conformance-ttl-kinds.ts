// One state of each kind with a time to live, as the suite's cases use them: they take numbers, and give what became of them.

import { z } from 'zod'
import type { KeyedSnapshot } from '../checkpoint/contract.ts'
import { range } from './conformance-harness.ts'
import type { CreateBackend, MemorySnapshots } from './conformance-harness.ts'
import type { KeyedStateBackend } from './contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from './descriptors.ts'
import type { TtlOptions } from './descriptors.ts'

/** What a kind of state does with the numbers that it is given, one after the other. */
export interface Kind {
  write(value: number): void
  /** undefined: there is nothing. */
  read(): unknown
  /** What `read` gives after these writes, all of them alive. */
  readonly after: (values: readonly number[]) => unknown
  clear(): void
}

const sum = (values: readonly number[]): number => values.reduce((left, right) => left + right)

/** One state of each kind; `ttl` undefined: they last. */
export function kindsOf(backend: KeyedStateBackend, ttl: TtlOptions | undefined): Readonly<Record<string, Kind>> {
  const options = ttl === undefined ? {} : { ttl }
  const value = backend.state(valueState('value', z.number(), options))
  const list = backend.state(listState('list', z.number(), options))
  const map = backend.state(mapState('map', { key: 'number', value: z.number(), ...options }))
  const reducing = backend.state(reducingState('reducing', z.number(), (left, right) => left + right, options))
  const aggregating = backend.state(
    aggregatingState(
      'aggregating',
      z.array(z.number()),
      {
        create: (): number[] => [],
        add: (accumulator, added: number) => {
          accumulator.push(added)
          return accumulator
        },
        result: (accumulator) => accumulator.join('+'),
      },
      options,
    ),
  )
  return {
    value: {
      write: (written) => value.update(written),
      read: () => value.get(),
      after: (values) => values.at(-1),
      clear: () => value.clear(),
    },
    list: {
      write: (written) => list.add(written),
      read: () => orNothing(list.get()),
      after: (values) => values,
      clear: () => list.clear(),
    },
    map: {
      write: (written) => map.put(written, written),
      read: () => orNothing(map.entries().map(([, held]) => held)),
      after: (values) => values,
      clear: () => map.clear(),
    },
    reducing: {
      write: (written) => reducing.add(written),
      read: () => reducing.get(),
      after: sum,
      clear: () => reducing.clear(),
    },
    aggregating: {
      write: (written) => aggregating.add(written),
      read: () => aggregating.get(),
      after: (values) => values.join('+'),
      clear: () => aggregating.clear(),
    },
  }
}

function orNothing(items: readonly unknown[]): readonly unknown[] | undefined {
  return items.length === 0 ? undefined : items
}

export const ttlMs = 1000

/** Entries as they lie in snapshots, expired or not: nobody has declared them. */
export async function storedEntries(
  create: CreateBackend,
  snapshots: readonly KeyedSnapshot[],
  store: MemorySnapshots,
) {
  const backend = create(range())
  await backend.restore(snapshots, store)
  return backend.entryCount
}
