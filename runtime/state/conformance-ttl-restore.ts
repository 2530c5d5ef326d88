// The suite's part about times to live in snapshots: over restores at any parallelism, and when a job gives a state one, changes it or
// takes it away.

import assert from 'node:assert/strict'
import { z } from 'zod'
import type { KeyedSnapshot } from '../checkpoint/contract.ts'
import {
  inRange,
  manyKeys,
  MAX_PARALLELISM,
  MemorySnapshots,
  range,
  snapshotOf,
  WallClock,
} from './conformance-harness.ts'
import type { ConformanceCase, CreateBackend } from './conformance-harness.ts'
import { kindsOf, ttlMs } from './conformance-ttl-kinds.ts'
import type { Kind } from './conformance-ttl-kinds.ts'
import type { KeyedStateBackend } from './contract.ts'
import { listState } from './descriptors.ts'
import type { TtlOptions } from './descriptors.ts'

const startMs = 1_700_000_000_000

export function storedTtlCases(create: CreateBackend): ConformanceCase[] {
  const keys = manyKeys(200)
  /** Each key at a time of its own, in one subtask or several. */
  const written = async (
    store: MemorySnapshots,
    parts: readonly (readonly [number, number, TtlOptions | undefined])[],
    between?: (backend: KeyedStateBackend, kinds: readonly Kind[], clock: WallClock) => () => void,
  ): Promise<KeyedSnapshot[]> => {
    const snapshots: KeyedSnapshot[] = []
    for (const [first, last, ttl] of parts) {
      const clock = new WallClock(startMs)
      const backend = create(range(first, last, clock))
      const kinds = Object.values(kindsOf(backend, ttl))
      for (const [index, key] of keys.entries()) {
        clock.ms = startMs + index
        if (!inRange(key, backend)) continue
        backend.setKey(key)
        for (const kind of kinds) kind.write(index)
      }
      snapshots.push(await snapshotOf(backend, store, between?.(backend, kinds, clock)))
    }
    return snapshots
  }
  /** Restores at `nowMs` and asserts which keys are there, in every kind. */
  const assertThere = async (
    at: { readonly store: MemorySnapshots; readonly snapshots: readonly KeyedSnapshot[]; readonly nowMs: number },
    ranges: readonly (readonly [number, number])[],
    ttl: TtlOptions | undefined,
    lives: (index: number) => boolean,
    laterMs = 0,
  ): Promise<void> => {
    for (const [first, last] of ranges) {
      for (const declared of ['before', 'after'] as const) {
        const clock = new WallClock(at.nowMs)
        const backend = create(range(first, last, clock))
        if (declared === 'before') kindsOf(backend, ttl)
        await backend.restore(at.snapshots, at.store)
        const kinds = Object.entries(kindsOf(backend, ttl))
        clock.ms += laterMs
        for (const [index, key] of keys.entries()) {
          if (!inRange(key, backend)) continue
          backend.setKey(key)
          for (const [name, kind] of kinds) {
            assert.deepEqual(kind.read(), lives(index) ? kind.after([index]) : undefined, `${name} of key ${index}`)
          }
        }
      }
    }
  }
  const whole = [[0, MAX_PARALLELISM - 1]] as const
  const ttl = { ms: ttlMs }
  return [
    {
      claim: 'times of expiry survive a restore, at the same and at any other parallelism',
      run: async () => {
        const store = new MemorySnapshots()
        const two = await written(store, [
          [0, 3, ttl],
          [4, 7, ttl],
        ])
        for (const ranges of [
          whole,
          [
            [0, 3],
            [4, 7],
          ],
          [
            [0, 2],
            [3, 4],
            [5, 7],
          ],
        ] as const) {
          await assertThere({ store, snapshots: two, nowMs: startMs + ttlMs + 99 }, ranges, ttl, (index) => index > 99)
        }
        const [merged] = await written(store, [[0, 7, ttl]])
        const at = { store, snapshots: [merged!], nowMs: startMs + ttlMs - 1 }
        await assertThere(
          at,
          [
            [0, 4],
            [5, 7],
          ],
          ttl,
          (index) => index > 50,
          51,
        )
      },
    },
    {
      claim: 'a snapshot holds times as they were at its cut, whatever is read and written while it is written',
      run: async () => {
        const store = new MemorySnapshots()
        const refreshed = { ms: ttlMs, refresh: 'on read and write' } as const
        const snapshots = await written(store, [[0, 7, refreshed]], (backend, kinds, clock) => {
          let step = 0
          return () => {
            clock.ms += 1
            for (let round = 0; round < 3; round++) {
              backend.setKey(keys[(step++ * 37) % keys.length]!)
              for (const [at, kind] of kinds.entries()) {
                if ((step + at) % 3 === 0) kind.read()
                else if ((step + at) % 3 === 1) kind.write(step)
                else kind.clear()
              }
            }
          }
        })
        const at = { store, snapshots, nowMs: startMs + ttlMs + 99 }
        await assertThere(at, whole, refreshed, (index) => index > 99)
      },
    },
    {
      claim: 'a snapshot leaves out what had expired at its cut, though it is removed or written again meanwhile',
      run: async () => {
        const store = new MemorySnapshots()
        const clock = new WallClock(startMs)
        const backend = create(range(undefined, undefined, clock))
        const kinds = Object.values(kindsOf(backend, ttl))
        for (const [index, key] of keys.entries()) {
          clock.ms = startMs + index
          backend.setKey(key)
          for (const kind of kinds) kind.write(index)
        }
        clock.ms = startMs + ttlMs + 99
        let step = 0
        const snapshot = await snapshotOf(backend, store, () => {
          clock.ms += 20
          for (let round = 0; round < 5; round++) {
            backend.setKey(keys[(step++ * 37) % keys.length]!)
            for (const kind of kinds)
              if (step % 2 === 0) kind.write(step)
              else kind.read()
          }
        })
        const at = { store, snapshots: [snapshot], nowMs: startMs + ttlMs + 99 }
        await assertThere(at, whole, ttl, (index) => index > 99)
      },
    },
    {
      claim: 'a snapshot holds items of a list that lived at its cut, though they expire and are dropped meanwhile',
      run: async () => {
        const store = new MemorySnapshots()
        const clock = new WallClock(startMs)
        const backend = create(range(undefined, undefined, clock))
        const items = listState('items', z.number(), { ttl })
        for (const atMs of [0, 500]) {
          clock.ms = startMs + atMs
          for (const key of keys) {
            backend.setKey(key)
            backend.state(items).add(atMs)
          }
        }
        clock.ms = startMs + ttlMs - 1
        const snapshot = await snapshotOf(backend, store, () => {
          clock.ms = startMs + ttlMs
          for (const key of keys) {
            backend.setKey(key)
            assert.deepEqual(backend.state(items).get(), [500])
          }
        })
        const copy = create(range(undefined, undefined, new WallClock(startMs + ttlMs - 1)))
        await copy.restore([snapshot], store)
        for (const key of keys) {
          copy.setKey(key)
          assert.deepEqual(copy.state(items).get(), [0, 500])
        }
      },
    },
    {
      claim: 'state that gets a time to live counts as written at the restore',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store, [[0, 7, undefined]])
        const at = { store, snapshots, nowMs: startMs + 50 * ttlMs }
        await assertThere(
          at,
          [
            [0, 2],
            [3, 7],
          ],
          ttl,
          () => true,
          ttlMs - 1,
        )
        await assertThere(
          at,
          [
            [0, 2],
            [3, 7],
          ],
          ttl,
          () => false,
          ttlMs,
        )
      },
    },
    {
      claim: 'state that loses its time to live keeps what had not expired at the snapshot, for ever',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store, [[0, 7, { ms: 100 }]])
        // The snapshot was cut when key 199 was written.
        const at = { store, snapshots, nowMs: startMs + 50 * ttlMs }
        await assertThere(
          at,
          [
            [0, 2],
            [3, 7],
          ],
          undefined,
          (index) => index > 99,
          50 * ttlMs,
        )
      },
    },
    {
      claim: 'another time to live counts from the last refresh of what is stored, longer or shorter',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store, [[0, 7, ttl]])
        const at = { store, snapshots, nowMs: startMs + ttlMs }
        await assertThere(at, whole, { ms: 2 * ttlMs }, (index) => index > 99, ttlMs + 99)
        await assertThere(at, whole, { ms: ttlMs - 100 }, (index) => index > 100)
      },
    },
    {
      claim: 'of one state some subtasks may have stored times and others none',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store, [
          [0, 3, ttl],
          [4, 7, undefined],
        ])
        const at = { store, snapshots, nowMs: startMs + ttlMs + 99 }
        const first = { first: 0, last: 3 }
        const lives = (index: number): boolean => !inRange(keys[index]!, first) || index > 99
        await assertThere(
          at,
          [
            [0, 5],
            [6, 7],
          ],
          ttl,
          lives,
        )
        await assertThere(at, whole, undefined, () => true)
      },
    },
    {
      claim: 'state with a time to live that nobody declares is kept with its times',
      run: async () => {
        const store = new MemorySnapshots()
        const first = await written(store, [[0, 7, ttl]])
        const silent = create(range(undefined, undefined, new WallClock(startMs + 10 * ttlMs)))
        await silent.restore(first, store)
        const second = await snapshotOf(silent, store)
        const at = { store, snapshots: [second], nowMs: startMs + ttlMs + 99 }
        await assertThere(at, whole, ttl, (index) => index > 99)
      },
    },
  ]
}
