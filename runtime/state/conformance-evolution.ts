// The suite's part about schemas that change between two starts: of every kind of state, read after the restore, and passed on unread by
// a job that does not declare it.

import assert from 'node:assert/strict'
import { z } from 'zod'
import type { ZodType } from 'zod'
import type { KeyedSnapshot } from '../checkpoint/contract.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { inRange, manyKeys, MAX_PARALLELISM, MemorySnapshots, range, snapshotOf } from './conformance-harness.ts'
import type { ConformanceCase, CreateBackend } from './conformance-harness.ts'
import type { KeyedStateBackend, MapState, TypedDescriptor } from './contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from './descriptors.ts'

const then = z.object({ count: z.int(), gone: z.string(), deep: z.array(z.object({ n: z.int() })) })
const today = z.object({
  unit: z.string().default('km'),
  count: z.number(),
  deep: z.array(z.object({ n: z.number(), more: z.array(z.int()).default(() => []) })),
})
type Then = z.infer<typeof then>
type Today = z.infer<typeof today>

interface Counted {
  readonly count: number
}

/** One state of each kind over one schema, and the accumulators as windows keep them. */
function kindsOf<T extends Counted>(backend: KeyedStateBackend, schema: ZodType<T>) {
  const windows: TypedDescriptor<MapState<number, T>> = {
    kind: 'map',
    name: 'windows',
    mapKey: 'number',
    mapKeyMeaning: 'starts of windows of 10 ms',
    accumulators: true,
    value: typeInfoOf<unknown>('windows', schema),
  }
  const add = (left: T, right: T): T => ({ ...left, count: left.count + right.count })
  const value = backend.state(valueState('value', schema))
  const list = backend.state(listState('list', schema))
  const map = backend.state(mapState('map', { key: 'string', value: schema }))
  const reducing = backend.state(reducingState('reducing', schema, add))
  const aggregating = backend.state(
    aggregatingState('aggregating', z.array(schema), {
      create: (): T[] => [],
      add: (all, added: T) => [...all, added],
      result: (all) => all,
    }),
  )
  const accumulators = backend.state(windows)
  return {
    write(item: T): void {
      value.update(item)
      list.add(item)
      map.put('one', item)
      reducing.add(item)
      aggregating.add(item)
      accumulators.put(0, item)
    },
    read: (): unknown => [
      value.get(),
      list.get(),
      map.entries(),
      reducing.get(),
      aggregating.get(),
      accumulators.get(0),
    ],
  }
}

const stateNames = ['value', 'list', 'map', 'reducing', 'aggregating', 'windows']
const before = (index: number): Then => ({ count: index, gone: `gone ${index}`, deep: [{ n: index }] })
const after = (index: number): Today => ({ unit: 'km', count: index, deep: [{ n: index, more: [] }] })
const all = (item: Today): unknown => [item, [item], [['one', item]], item, [item], item]

export function evolutionCases(create: CreateBackend): ConformanceCase[] {
  const keys = manyKeys(100)
  const written = async (store: MemorySnapshots): Promise<KeyedSnapshot[]> => {
    const snapshots: KeyedSnapshot[] = []
    for (const [first, last] of [
      [0, 3],
      [4, 7],
    ] as const) {
      const backend = create(range(first, last))
      const kinds = kindsOf(backend, then)
      for (const [index, key] of keys.entries()) {
        if (!inRange(key, backend)) continue
        backend.setKey(key)
        kinds.write(before(index))
      }
      snapshots.push(await snapshotOf(backend, store))
    }
    return snapshots
  }
  const assertToday = (backend: KeyedStateBackend): void => {
    const kinds = kindsOf(backend, today)
    for (const [index, key] of keys.entries()) {
      if (!inRange(key, backend)) continue
      backend.setKey(key)
      assert.deepEqual(kinds.read(), all(after(index)))
    }
  }
  return [
    {
      claim: 'in every kind a field may be gained with a default, be lost, and be widened, at any parallelism',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store)
        for (const [first, last] of [
          [0, MAX_PARALLELISM - 1],
          [2, 5],
        ] as const) {
          for (const declared of ['before', 'after'] as const) {
            const backend = create(range(first, last))
            if (declared === 'before') kindsOf(backend, today)
            await backend.restore(snapshots, store)
            assertToday(backend)
          }
        }
      },
    },
    {
      claim: 'evolved values are written as today has them, and go on as any others',
      run: async () => {
        const store = new MemorySnapshots()
        const first = create(range())
        kindsOf(first, today)
        await first.restore(await written(store), store)
        const second = create(range())
        await second.restore([await snapshotOf(first, store)], store)
        assertToday(second)
        second.setKey(keys[7]!)
        const kinds = kindsOf(second, today)
        kinds.write({ unit: 'm', count: 0.5, deep: [] })
        const third = create(range())
        await third.restore([await snapshotOf(second, store)], store)
        third.setKey(keys[7]!)
        assert.deepEqual((kindsOf(third, today).read() as unknown[])[3], { ...after(7), count: 7.5 })
      },
    },
    {
      claim: 'state that was snapshotted again unread can still be read as what it became',
      run: async () => {
        const store = new MemorySnapshots()
        const silent = create(range())
        await silent.restore(await written(store), store)
        const backend = create(range())
        await backend.restore([await snapshotOf(silent, store)], store)
        assertToday(backend)
      },
    },
    {
      claim: 'of one state some subtasks may have stored the old form and others the new one',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store)
        const read = create(range(0, 3))
        await read.restore(snapshots, store)
        assertToday(read)
        const unread = create(range(4, 7))
        await unread.restore(snapshots, store)
        const mixed = [await snapshotOf(read, store), await snapshotOf(unread, store)]
        for (let round = 0; round < 2; round++) {
          const backend = create(range())
          await backend.restore(mixed, store)
          if (round === 1) {
            // Once more unread, now both forms in one subtask.
            const again = create(range())
            await again.restore([await snapshotOf(backend, store)], store)
            assertToday(again)
          }
          assertToday(backend)
        }
      },
    },
    {
      claim: 'what cannot become the schema of today is refused with operator, state and field, and nothing is used',
      run: async () => {
        const store = new MemorySnapshots()
        const snapshots = await written(store)
        const others: readonly (readonly [ZodType<Counted>, RegExp])[] = [
          [then.extend({ added: z.string() }), /field (\[\]\.)?added is new, and has no default\./],
          [then.extend({ gone: z.int() }), /field (\[\]\.)?gone was string and is int today\./],
          [
            then.extend({ deep: z.array(z.object({ n: z.bigint() })) }),
            /field (\[\]\.)?deep\[\]\.n was int and is bigint today\./,
          ],
        ]
        for (const [schema, reason] of others) {
          for (const name of stateNames) {
            const declare = (backend: KeyedStateBackend) => kindsOf(onlyState(backend, name), schema)
            const expected = new RegExp(`MR-T02.*Operator 'suite', state '${name}': ${reason.source}`)
            const early = create(range())
            declare(early)
            await assert.rejects(early.restore(snapshots, store), expected)
            assert.equal(early.entryCount, 0)
            const late = create(range())
            await late.restore(snapshots, store)
            const entries = late.entryCount
            assert.throws(() => declare(late), expected)
            assert.equal(late.entryCount, entries)
          }
        }
      },
    },
  ]
}

/** The backend, that is asked for no state but `name`; the other handles are of no use. */
function onlyState(backend: KeyedStateBackend, name: string): KeyedStateBackend {
  const state: KeyedStateBackend['state'] = <Handle>(descriptor: TypedDescriptor<Handle>) =>
    (descriptor.name === name ? backend.state(descriptor) : {}) as Handle
  return { ...backend, state }
}
