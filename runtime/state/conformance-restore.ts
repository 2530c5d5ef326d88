// The suite's part about snapshots: exact cuts, aborts, restores at any parallelism, changed schemas, watermarks.

import assert from 'node:assert/strict'
import { z } from 'zod'
import { checkpointId } from '../base/ids.ts'
import type { KeyedSnapshot } from '../checkpoint/contract.ts'
import type { Key } from '../record/contract.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import {
  drainTimers,
  inRange,
  manyKeys,
  MAX_PARALLELISM,
  MemorySnapshots,
  range,
  slicesWith,
  snapshotOf,
  timerText,
} from './conformance-harness.ts'
import type { ConformanceCase, CreateBackend } from './conformance-harness.ts'
import type { KeyedStateBackend } from './contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from './descriptors.ts'

/** One state of each kind. */
function allKinds(backend: KeyedStateBackend) {
  return {
    value: backend.state(valueState('value', z.object({ count: z.number(), text: z.string() }))),
    list: backend.state(listState('list', z.string())),
    map: backend.state(mapState('map', { key: 'string', value: z.object({ count: z.number() }) })),
    reducing: backend.state(reducingState('reducing', z.number(), (left, right) => left + right)),
    aggregating: backend.state(
      aggregatingState('aggregating', z.array(z.number()), {
        create: (): number[] => [],
        add: (accumulator, value: number) => {
          accumulator.push(value)
          return accumulator
        },
        result: (accumulator) => accumulator.join('+'),
      }),
    ),
  }
}

type AllKinds = ReturnType<typeof allKinds>

function fill(backend: KeyedStateBackend, kinds: AllKinds, keys: readonly Key[]): void {
  for (const [index, key] of keys.entries()) {
    if (!inRange(key, backend)) continue
    backend.setKey(key)
    kinds.value.update({ count: index, text: `a text longer than a few characters, number ${index}` })
    kinds.list.addAll([`first ${index}`, `second ${index}`])
    kinds.map.put('one', { count: index })
    kinds.map.put('two', { count: -index })
    kinds.reducing.add(index)
    kinds.aggregating.add(index)
    kinds.aggregating.add(1)
    backend.timers.register('event', index * 10)
    backend.timers.register('processing', index * 10, `tag ${index}`)
  }
}

function assertFilled(backend: KeyedStateBackend, kinds: AllKinds, keys: readonly Key[]): void {
  let owned = 0
  for (const [index, key] of keys.entries()) {
    if (!inRange(key, backend)) continue
    owned++
    backend.setKey(key)
    assert.deepEqual(kinds.value.get(), { count: index, text: `a text longer than a few characters, number ${index}` })
    assert.deepEqual(kinds.list.get(), [`first ${index}`, `second ${index}`])
    assert.deepEqual(
      new Map(kinds.map.entries()),
      new Map([
        ['one', { count: index }],
        ['two', { count: -index }],
      ]),
    )
    assert.equal(kinds.reducing.get(), index)
    assert.equal(kinds.aggregating.get(), `${index}+1`)
  }
  assert.equal(backend.entryCount, owned * 8)
  const expected = keys.flatMap((key, index) =>
    inRange(key, backend)
      ? [
          timerText({ key, domain: 'event', timestampMs: index * 10, tag: '' }),
          timerText({ key, domain: 'processing', timestampMs: index * 10, tag: `tag ${index}` }),
        ]
      : [],
  )
  const fired = [...drainTimers(backend, 'event'), ...drainTimers(backend, 'processing')].map(timerText)
  assert.deepEqual(fired.sort(), expected.sort())
}

/** Changes, deletes and adds at random places; called between the slices of a snapshot. */
function disturb(backend: KeyedStateBackend, kinds: AllKinds, keys: readonly Key[]): () => void {
  let step = 0
  return () => {
    for (let round = 0; round < 5; round++) {
      step++
      const key = keys[(step * 37) % keys.length]!
      backend.setKey(step % 4 === 0 ? `new ${step}` : key)
      kinds.value.update({ count: -1, text: 'changed' })
      kinds.map.put(`new ${step}`, { count: 0 })
      kinds.map.mutate('one', (value) => {
        value.count = -99
      })
      kinds.list.add('more')
      kinds.reducing.add(1000)
      kinds.aggregating.add(7)
      backend.timers.register('event', 5 + step * 10, 'new')
      backend.timers.delete('processing', ((step * 37) % keys.length) * 10, `tag ${(step * 37) % keys.length}`)
      if (step % 3 === 0) kinds.map.clear()
      if (step % 5 === 0) {
        kinds.value.clear()
        kinds.list.clear()
        kinds.value.update({ count: -2, text: 'back again' })
      }
      if (step % 7 === 0) backend.takeDue('event', Number.MAX_SAFE_INTEGER)
      backend.setKey(key)
      kinds.value.mutate((value) => {
        value.count = -3
        value.text = 'changed in place'
      })
    }
  }
}

async function restored(
  create: CreateBackend,
  snapshots: readonly KeyedSnapshot[],
  store: MemorySnapshots,
  first = 0,
  last = MAX_PARALLELISM - 1,
) {
  const backend = create(range(first, last))
  await backend.restore(snapshots, store)
  return { backend, kinds: allKinds(backend) }
}

export function restoreCases(create: CreateBackend): ConformanceCase[] {
  const keys = manyKeys()
  return [
    {
      claim:
        'a snapshot holds exactly what was there at its cut, whatever is changed, deleted and added while it is written',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        const kinds = allKinds(backend)
        fill(backend, kinds, keys)
        let turns = 0
        const change = disturb(backend, kinds, keys)
        const snapshot = await snapshotOf(backend, store, () => {
          turns++
          change()
        })
        assert.ok(turns > 10, `the snapshot was written in ${turns} slices`)
        const after = await restored(create, [snapshot], store)
        assertFilled(after.backend, after.kinds, keys)
      },
    },
    {
      claim: 'one key with many timers is written exactly, while they fire, go and come',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        backend.setKey('busy')
        for (let timestampMs = 0; timestampMs < 400; timestampMs++) backend.timers.register('event', timestampMs)
        let turn = 0
        const snapshot = await snapshotOf(backend, store, () => {
          turn++
          for (let count = 0; count < 60; count++) backend.takeDue('event', 400)
          backend.setKey('busy')
          backend.timers.delete('event', 400 - turn)
          backend.timers.register('event', 1000 + turn)
        })
        assert.ok(turn > 3)
        const copy = create(range())
        await copy.restore([snapshot], store)
        assert.deepEqual(
          drainTimers(copy, 'event').map((timer) => timer.timestampMs),
          Array.from({ length: 400 }, (_, timestampMs) => timestampMs),
        )
      },
    },
    {
      claim: 'one snapshot after another, each holds its own cut',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        const count = backend.state(valueState('count', z.number()))
        for (let cut = 1; cut <= 3; cut++) {
          for (const key of keys) {
            backend.setKey(key)
            count.update(cut)
          }
          const snapshot = await snapshotOf(backend, store, () => {
            backend.setKey(keys[cut]!)
            count.update(-1)
          })
          const copy = create(range())
          await copy.restore([snapshot], store)
          const copied = copy.state(valueState('count', z.number()))
          for (const key of keys) {
            copy.setKey(key)
            assert.equal(copied.get(), cut)
          }
        }
      },
    },
    {
      claim: 'an aborted snapshot rejects, leaves the state as it is, and the next one is exact',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        const kinds = allKinds(backend)
        fill(backend, kinds, keys)
        let turns = 0
        const aborted = backend.snapshot(
          checkpointId(1),
          store,
          slicesWith(() => {
            if (++turns === 5) aborted.abort()
          }),
        )
        await assert.rejects(aborted.done, /MR-T06/)
        aborted.abort()
        const snapshot = await snapshotOf(backend, store, disturb(backend, kinds, keys))
        const after = await restored(create, [snapshot], store)
        assertFilled(after.backend, after.kinds, keys)
      },
    },
    {
      claim: 'a snapshot whose store fails rejects, and the next one is exact',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        const kinds = allKinds(backend)
        fill(backend, kinds, keys)
        const broken = { write: () => Promise.reject(new Error('the disk is full')) }
        await assert.rejects(snapshotOf(backend, broken), /the disk is full/)
        const after = await restored(create, [await snapshotOf(backend, store)], store)
        assertFilled(after.backend, after.kinds, keys)
      },
    },
    {
      claim: 'ranges are split and merged: every key and timer lands in exactly one subtask',
      run: async () => {
        const store = new MemorySnapshots()
        const written: KeyedSnapshot[] = []
        for (const [first, last] of [
          [0, 2],
          [3, 5],
          [6, 7],
        ] as const) {
          const backend = create(range(first, last))
          fill(backend, allKinds(backend), keys)
          written.push(await snapshotOf(backend, store))
        }
        let entries = 0
        for (const [first, last] of [
          [0, 3],
          [4, 4],
          [5, 7],
        ] as const) {
          const after = await restored(create, written, store, first, last)
          entries += after.backend.entryCount
          assertFilled(after.backend, after.kinds, keys)
        }
        assert.equal(entries, keys.length * 8)
      },
    },
    {
      claim: 'a restore reads the blocks of its own groups and no others',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        fill(backend, allKinds(backend), keys)
        const snapshot = await snapshotOf(backend, store)
        store.reads.length = 0
        await restored(create, [snapshot], store, 2, 3)
        const own = snapshot.groups.slice(2, 4).map(({ handle }) => (handle?.kind === 'object' ? handle.object : ''))
        assert.deepEqual(store.reads.sort(), own.sort())
      },
    },
    {
      claim: 'a key group that is missing or there twice is refused',
      run: async () => {
        const store = new MemorySnapshots()
        const left = await snapshotOf(create(range(0, 3)), store)
        const right = await snapshotOf(create(range(4, 7)), store)
        await assert.rejects(create(range()).restore([left], store), /MR-T04.*key group 4/)
        await assert.rejects(create(range()).restore([left, right, right], store), /MR-T04.*key group 4/)
        await create(range()).restore([left, right], store)
      },
    },
    {
      claim:
        'a value schema may gain a field with a default, lose one and widen a number; another kind or schema is refused',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        const old = backend.state(valueState('state', z.object({ count: z.int(), gone: z.string() })))
        backend.setKey('a')
        old.update({ count: 3, gone: 'x' })
        const snapshot = await snapshotOf(backend, store)
        const evolved = valueState('state', z.object({ count: z.number(), unit: z.string().default('km') }))
        for (const declare of ['before', 'after'] as const) {
          const copy = create(range())
          if (declare === 'before') copy.state(evolved)
          await copy.restore([snapshot], store)
          const state = copy.state(evolved)
          copy.setKey('a')
          assert.deepEqual(state.get(), { count: 3, unit: 'km' })
        }
        const text = valueState('state', z.string())
        const early = create(range())
        early.state(text)
        await assert.rejects(early.restore([snapshot], store), /MR-T02.*'state'/)
        const late = create(range())
        await late.restore([snapshot], store)
        assert.throws(() => late.state(text), /MR-T02.*'state'/)
        assert.throws(() => late.state(listState('state', z.number())), /MR-T02.*'state'/)
      },
    },
    {
      claim: 'state that nobody declares is kept and written again',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        fill(backend, allKinds(backend), keys)
        const first = await snapshotOf(backend, store)
        const silent = create(range())
        await silent.restore([first], store)
        assert.equal(silent.entryCount, keys.length * 8)
        const second = await snapshotOf(silent, store)
        const after = await restored(create, [second], store)
        assertFilled(after.backend, after.kinds, keys)
      },
    },
    {
      claim: 'a snapshot holds undeclared state also when it is declared while the snapshot is written',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        fill(backend, allKinds(backend), keys)
        const first = await snapshotOf(backend, store)
        const silent = create(range())
        await silent.restore([first], store)
        let change: (() => void) | undefined
        const second = await snapshotOf(silent, store, () => {
          change ??= disturb(silent, allKinds(silent), keys)
          change()
        })
        const after = await restored(create, [second], store)
        assertFilled(after.backend, after.kinds, keys)
      },
    },
    {
      claim: 'a flipped bit in any block is found, and nothing of the snapshot is used',
      run: async () => {
        const store = new MemorySnapshots()
        const backend = create(range())
        fill(backend, allKinds(backend), keys.slice(0, 20))
        const snapshot = await snapshotOf(backend, store)
        for (const [object, bytes] of store.objects) {
          for (let at = 0; at < bytes.length; at++) {
            bytes[at] = bytes[at]! ^ (1 << (at % 8))
            const copy = create(range())
            await assert.rejects(copy.restore([snapshot], store), new RegExp(`MR-T0[35].*key group.*${object}`))
            assert.equal(copy.entryCount, 0)
            bytes[at] = bytes[at]! ^ (1 << (at % 8))
          }
        }
        await create(range()).restore([snapshot], store)
      },
    },
    {
      claim: 'the watermark is stored with each key group, empty ones too, and what was late stays late',
      run: async () => {
        const store = new MemorySnapshots()
        const left = create(range(0, 3))
        left.setWatermark(100)
        const right = create(range(4, 7))
        right.setWatermark(70)
        const written = [await snapshotOf(left, store), await snapshotOf(right, store)]
        const merged = create(range())
        await merged.restore(written, store)
        assert.equal(merged.restoredWatermark, 70)
        merged.setWatermark(80)
        const again = create(range())
        await again.restore([await snapshotOf(merged, store)], store)
        assert.equal(again.restoredWatermark, 80)
        for (const key of keys) {
          again.setKey(key)
          assert.equal(again.keyWatermark, inRange(key, left) ? 100 : 80)
        }
        const fresh = create(range())
        await fresh.restore([], store)
        assert.equal(fresh.restoredWatermark, MIN_WATERMARK)
      },
    },
    {
      claim: "after a restore each block's timers up to its own watermark are overdue, once, and no others",
      run: async () => {
        const store = new MemorySnapshots()
        const written: KeyedSnapshot[] = []
        for (const [first, last, watermark] of [
          [0, 3, 100],
          [4, 7, 50],
        ] as const) {
          const backend = create(range(first, last))
          for (const key of keys.slice(0, 40)) {
            if (!inRange(key, backend)) continue
            backend.setKey(key)
            for (const timestampMs of [90, 40, 110]) backend.timers.register('event', timestampMs)
            backend.timers.register('processing', 1)
          }
          backend.setWatermark(watermark)
          written.push(await snapshotOf(backend, store))
        }
        const backend = create(range())
        await backend.restore(written, store)
        const fired: string[] = []
        for (let timer = backend.takeOverdueOfRestore(); timer !== undefined; timer = backend.takeOverdueOfRestore()) {
          assert.deepEqual(backend.currentKey, timer.key)
          assert.ok(timer.timestampMs <= backend.keyWatermark)
          fired.push(timerText(timer))
          // What firing registers within the watermark is overdue too; what it deletes is not.
          if (timer.key === 0 && timer.timestampMs === 40) backend.timers.register('event', 41)
          if (timer.key === 5 && timer.timestampMs === 40) backend.timers.delete('event', 90)
        }
        const expected = keys.slice(0, 40).flatMap((key) => {
          const times = inRange(key, { first: 0, last: 3 }) ? [40, 90] : [40]
          return times
            .filter((timestampMs) => key !== 5 || timestampMs !== 90)
            .concat(key === 0 ? [41] : [])
            .map((timestampMs) => timerText({ key, domain: 'event', timestampMs, tag: '' }))
        })
        assert.deepEqual(fired.sort(), expected.sort())
        assert.equal(backend.nextTimer('processing'), 1)
      },
    },
  ]
}
