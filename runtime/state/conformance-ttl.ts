// The suite's part about states with a time to live: when entries expire, which reads and writes begin their time anew, and that expired
// ones go.

import assert from 'node:assert/strict'
import { z } from 'zod'
import { manyKeys, MemorySnapshots, range, snapshotOf, WallClock } from './conformance-harness.ts'
import type { ConformanceCase, CreateBackend } from './conformance-harness.ts'
import { kindsOf, storedEntries, ttlMs } from './conformance-ttl-kinds.ts'
import type { Kind } from './conformance-ttl-kinds.ts'
import { storedTtlCases } from './conformance-ttl-restore.ts'
import type { KeyedStateBackend } from './contract.ts'
import { listState, mapState, valueState } from './descriptors.ts'
import type { TtlOptions } from './descriptors.ts'

/** A fresh backend, with key 'a' set and a state of each kind. */
function opened(create: CreateBackend, ttl: Partial<TtlOptions> = {}) {
  const clock = new WallClock()
  const backend = create(range(undefined, undefined, clock))
  const kinds = kindsOf(backend, { ms: ttlMs, ...ttl })
  backend.setKey('a')
  return { clock, backend, kinds: Object.entries(kinds) }
}

export function ttlCases(create: CreateBackend): ConformanceCase[] {
  return [...expiryCases(create), ...cleanUpCases(create), ...storedTtlCases(create)]
}

function expiryCases(create: CreateBackend): ConformanceCase[] {
  return [
    {
      claim: 'an entry is there until its time to live has passed since it was written, and not a millisecond longer',
      run: async () => {
        const { clock, kinds } = opened(create)
        for (const [, kind] of kinds) kind.write(5)
        clock.ms += ttlMs - 1
        for (const [name, kind] of kinds) assert.deepEqual(kind.read(), kind.after([5]), name)
        clock.ms += 1
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
        // What comes after it begins anew.
        for (const [name, kind] of kinds) {
          kind.write(7)
          assert.deepEqual(kind.read(), kind.after([7]), name)
        }
      },
    },
    {
      claim: 'a write begins the time anew, of a list and a map only for what was written',
      run: async () => {
        const { clock, kinds } = opened(create)
        for (const [, kind] of kinds) kind.write(5)
        clock.ms += ttlMs - 1
        for (const [, kind] of kinds) kind.write(6)
        clock.ms += ttlMs - 1
        for (const [name, kind] of kinds) {
          const lone = name === 'list' || name === 'map'
          assert.deepEqual(kind.read(), kind.after(lone ? [6] : [5, 6]), name)
        }
      },
    },
    {
      claim: 'mutate is a write, and finds nothing that has expired',
      run: async () => {
        const { clock, backend } = opened(create)
        const value = backend.state(valueState('counted', z.object({ count: z.number() }), { ttl: { ms: ttlMs } }))
        const map = backend.state(
          mapState('each', { key: 'string', value: z.object({ count: z.number() }), ttl: { ms: ttlMs } }),
        )
        value.update({ count: 1 })
        map.put('x', { count: 1 })
        for (let round = 0; round < 3; round++) {
          clock.ms += ttlMs - 1
          value.mutate((held) => void held.count++)
          map.mutate('x', (held) => ({ count: held.count + 1 }))
        }
        assert.deepEqual(value.get(), { count: 4 })
        assert.deepEqual(map.get('x'), { count: 4 })
        clock.ms += ttlMs
        value.mutate(() => assert.fail('it has expired'))
        map.mutate('x', () => assert.fail('it has expired'))
      },
    },
    {
      claim: "a read begins the time anew with 'on read and write', and does not with 'on write'",
      run: async () => {
        for (const refresh of ['on write', 'on read and write'] as const) {
          const { clock, kinds } = opened(create, { refresh })
          for (const [, kind] of kinds) kind.write(5)
          clock.ms += ttlMs - 1
          for (const [name, kind] of kinds) assert.deepEqual(kind.read(), kind.after([5]), name)
          clock.ms += ttlMs - 1
          const expected = (kind: Kind) => (refresh === 'on write' ? undefined : kind.after([5]))
          for (const [name, kind] of kinds) assert.deepEqual(kind.read(), expected(kind), `${name}, ${refresh}`)
          clock.ms += ttlMs
          for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
        }
      },
    },
    {
      claim:
        "'returned if not yet cleaned up' gives what has expired while it is still there, and refreshes it by no read",
      run: async () => {
        const { clock, backend, kinds } = opened(create, {
          refresh: 'on read and write',
          expired: 'returned if not yet cleaned up',
        })
        for (const [, kind] of kinds) kind.write(5)
        clock.ms += ttlMs
        for (const [name, kind] of kinds) assert.deepEqual(kind.read(), kind.after([5]), name)
        assert.equal(await storedEntries(create, [await snapshotOf(backend, new MemorySnapshots())], emptyStore), 0)
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
      },
    },
    {
      claim: 'items of a list and entries of a map expire one by one',
      run: async () => {
        const { clock, backend } = opened(create)
        const list = backend.state(listState('numbers', z.number(), { ttl: { ms: ttlMs } }))
        const map = backend.state(mapState('names', { key: 'string', value: z.number(), ttl: { ms: ttlMs } }))
        for (let step = 0; step < 4; step++) {
          list.addAll([step, step + 0.5])
          map.put(`name ${step}`, step)
          clock.ms += ttlMs / 4
        }
        assert.deepEqual(list.get(), [1, 1.5, 2, 2.5, 3, 3.5])
        assert.equal(map.size, 3)
        assert.deepEqual(map.keys(), ['name 1', 'name 2', 'name 3'])
        assert.ok(!map.has('name 0') && map.has('name 1'))
        clock.ms += ttlMs / 2
        assert.deepEqual(map.entries(), [['name 3', 3]])
        assert.deepEqual(list.get(), [3, 3.5])
        list.update([9])
        clock.ms += ttlMs / 2
        assert.deepEqual(list.get(), [9])
        assert.equal(map.get('name 3'), undefined)
        assert.equal(map.size, 0)
      },
    },
    {
      claim: 'clear and delete take away what has a time to live as they do all else',
      run: async () => {
        const { backend, kinds } = opened(create)
        for (const [, kind] of kinds) kind.write(5)
        for (const [, kind] of kinds) kind.clear()
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
        assert.equal(backend.entryCount, 0)
      },
    },
    {
      claim:
        'a clock that is set back revives nothing that was seen to be gone, and else lengthens lives by the jump alone',
      run: async () => {
        const { clock, backend, kinds } = opened(create)
        for (const [, kind] of kinds) kind.write(5)
        clock.ms += ttlMs
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
        clock.ms -= 500
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, `${name} came back`)

        backend.setKey('b')
        for (const [, kind] of kinds) kind.write(5)
        clock.ms -= 500
        clock.ms += ttlMs + 499
        for (const [name, kind] of kinds) assert.deepEqual(kind.read(), kind.after([5]), name)
        clock.ms += 1
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)

        // Written after the jump: by the clock as it is then.
        backend.setKey('c')
        for (const [, kind] of kinds) kind.write(5)
        clock.ms -= 500
        for (const [, kind] of kinds) kind.write(6)
        clock.ms += ttlMs - 1
        for (const [name, kind] of kinds) assert.deepEqual(kind.read(), kind.after([5, 6]), name)
        clock.ms += 501
        for (const [name, kind] of kinds) assert.equal(kind.read(), undefined, name)
      },
    },
    {
      claim: 'one name has one time to live, of whole milliseconds above 0',
      run: async () => {
        const backend = create(range())
        backend.state(valueState('state', z.number(), { ttl: { ms: 5 } }))
        backend.state(valueState('state', z.number(), { ttl: { ms: 5, refresh: 'on write' } }))
        assert.throws(() => backend.state(valueState('state', z.number())), /MR-T01.*'state'/)
        assert.throws(() => backend.state(valueState('state', z.number(), { ttl: { ms: 6 } })), /MR-T01.*'state'/)
        for (const ms of [0, -1, 0.5, Number.NaN, Infinity]) {
          assert.throws(() => valueState('state', z.number(), { ttl: { ms } }), /MR-T01.*'state'/)
        }
        const misspelt = { ms: 1, refresh: 'on read' } as unknown as TtlOptions
        assert.throws(() => listState('state', z.number(), { ttl: misspelt }), /MR-T01.*'state'.*refresh 'on read'/)
      },
    },
  ]
}

const emptyStore = new MemorySnapshots()

function cleanUpCases(create: CreateBackend): ConformanceCase[] {
  const keys = manyKeys()
  const fill = (backend: KeyedStateBackend, kinds: readonly (readonly [string, Kind])[]): void => {
    for (const [index, key] of keys.entries()) {
      backend.setKey(key)
      for (const [, kind] of kinds) {
        kind.write(index)
        kind.write(index + 1)
      }
    }
  }
  return [
    {
      claim: 'the memory of keys that never come again shrinks with the use of others, a few entries at a time',
      run: async () => {
        for (const expired of ['never returned', 'returned if not yet cleaned up'] as const) {
          const { clock, backend, kinds } = opened(create, { expired })
          fill(backend, kinds)
          // Of a map each entry counts.
          assert.equal(backend.entryCount, keys.length * 6)
          clock.ms += ttlMs
          let mostAtOnce = 0
          for (let use = 0; use < keys.length * 2; use++) {
            const before = backend.entryCount
            backend.setKey('busy')
            for (const [, kind] of kinds) kind.read()
            mostAtOnce = Math.max(mostAtOnce, before - backend.entryCount)
          }
          assert.equal(backend.entryCount, 0)
          assert.ok(mostAtOnce <= kinds.length * 8, `${mostAtOnce} entries went at once`)
        }
      },
    },
    {
      claim: 'the memory shrinks also while new keys keep coming',
      run: async () => {
        const { clock, backend, kinds } = opened(create)
        let most = 0
        for (let step = 0; step < 4000; step++) {
          backend.setKey(`key ${step}`)
          for (const [, kind] of kinds) for (const part of [0, 1, 2]) kind.write(step * 3 + part)
          clock.ms += ttlMs / 100
          most = Math.max(most, backend.entryCount)
        }
        // A hundred keys are alive at a time, each with three entries of the map and one of each other kind.
        assert.ok(most < (kinds.length + 2) * 200, `${most} entries`)
      },
    },
    {
      claim: 'a list that is only added to does not grow for ever',
      run: async () => {
        const store = new MemorySnapshots()
        const { clock, backend } = opened(create)
        const list = backend.state(listState('numbers', z.number(), { ttl: { ms: 10 } }))
        for (let step = 0; step < 1000; step++) {
          list.add(step)
          clock.ms++
        }
        const snapshot = await snapshotOf(backend, store)
        let bytes = 0
        for (const { handle } of snapshot.groups) bytes += handle?.kind === 'object' ? handle.length : 0
        assert.ok(bytes < 500, `${bytes} bytes for ten items`)
        assert.deepEqual(list.get(), [991, 992, 993, 994, 995, 996, 997, 998, 999])
      },
    },
    {
      claim: 'items of a list go though others of it live and nobody uses its key',
      run: async () => {
        const { clock, backend } = opened(create)
        const ttl = { ms: ttlMs, expired: 'returned if not yet cleaned up' } as const
        const list = backend.state(listState('numbers', z.number(), { ttl }))
        for (const item of [1, 2, 3]) {
          list.add(item)
          clock.ms += ttlMs / 2
        }
        assert.deepEqual(list.get(), [1, 2, 3])
        for (const key of keys) {
          backend.setKey(key)
          list.get()
        }
        backend.setKey('a')
        assert.deepEqual(list.get(), [3])
      },
    },
    {
      claim: 'what has expired is in no snapshot, and a snapshot takes it out of memory',
      run: async () => {
        const store = new MemorySnapshots()
        const { clock, backend, kinds } = opened(create)
        fill(backend, kinds)
        clock.ms += ttlMs - 1
        backend.setKey(keys[0]!)
        for (const [, kind] of kinds) kind.write(-1)
        clock.ms += 1
        const snapshot = await snapshotOf(backend, store)
        assert.equal(await storedEntries(create, [snapshot], store), kinds.length)
        assert.equal(backend.entryCount, kinds.length)
        for (const [name, kind] of kinds) {
          const lone = name === 'list' || name === 'map'
          assert.deepEqual(kind.read(), kind.after(lone ? [-1] : [0, 1, -1]), name)
        }
      },
    },
  ]
}
