// The suite that holds every backend of keyed state to contract.ts. A test file runs each case under its claim:
// `for (const { claim, run } of keyedStateConformance(createHeapBackend)) it(claim, run)`.

import assert from 'node:assert/strict'
import { z } from 'zod'
import { MIN_WATERMARK } from '../record/element.ts'
import { drainTimers, range } from './conformance-harness.ts'
import type { ConformanceCase, CreateBackend } from './conformance-harness.ts'
import { evolutionCases } from './conformance-evolution.ts'
import { restoreCases } from './conformance-restore.ts'
import { ttlCases } from './conformance-ttl.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from './descriptors.ts'

export function keyedStateConformance(create: CreateBackend): ConformanceCase[] {
  return [
    ...kindCases(create),
    ...timerCases(create),
    ...restoreCases(create),
    ...evolutionCases(create),
    ...ttlCases(create),
  ]
}

const person = z.object({ name: z.string(), visits: z.number() })

function kindCases(create: CreateBackend): ConformanceCase[] {
  return [
    {
      claim: 'a value state belongs to the current key, and holds nothing before an update and after a clear',
      run: async () => {
        const backend = create(range())
        const state = backend.state(valueState('person', person))
        backend.setKey('a')
        assert.equal(state.get(), undefined)
        state.update({ name: 'Ada', visits: 1 })
        backend.setKey('b')
        assert.equal(state.get(), undefined)
        state.update({ name: 'Bob', visits: 7 })
        backend.setKey('a')
        assert.deepEqual(state.get(), { name: 'Ada', visits: 1 })
        assert.equal(backend.entryCount, 2)
        state.clear()
        assert.equal(state.get(), undefined)
        assert.equal(backend.entryCount, 1)
        state.update({ name: 'Ada', visits: 2 })
        assert.deepEqual(state.get(), { name: 'Ada', visits: 2 })
      },
    },
    {
      claim: 'mutate changes in place or replaces, and does nothing without a value',
      run: async () => {
        const backend = create(range())
        const state = backend.state(valueState('person', person))
        backend.setKey(1)
        state.mutate(() => assert.fail('there is no value'))
        state.update({ name: 'Ada', visits: 1 })
        state.mutate((value) => {
          value.visits++
        })
        assert.deepEqual(state.get(), { name: 'Ada', visits: 2 })
        state.mutate((value) => ({ ...value, name: 'Eve' }))
        assert.deepEqual(state.get(), { name: 'Eve', visits: 2 })
      },
    },
    {
      claim: 'keys are told apart by type and value, and -0 is 0',
      run: async () => {
        const backend = create(range())
        const state = backend.state(valueState('seen', z.string()))
        const keys = [0, '0', 0n, false, ['0'], [0], [[0]], '', [], '\u0000a0:', '\u0000', 'ä', '\ud800']
        for (const [index, key] of keys.entries()) {
          backend.setKey(key)
          assert.equal(state.get(), undefined, `key ${index} is new`)
          state.update(`key ${index}`)
        }
        for (const [index, key] of keys.entries()) {
          backend.setKey(key)
          assert.equal(state.get(), `key ${index}`)
        }
        backend.setKey(-0)
        assert.equal(state.get(), 'key 0')
        assert.ok(Object.is(backend.currentKey, 0))
        assert.throws(() => backend.setKey(Number.NaN), /MR-R03/)
      },
    },
    {
      claim: 'a tuple key that changes after it was set does not change the state',
      run: async () => {
        const backend = create(range())
        const state = backend.state(valueState('seen', z.string()))
        const key: [string, number] = ['a', 1]
        backend.setKey(key)
        state.update('a1')
        key[1] = 2
        backend.setKey(key)
        assert.equal(state.get(), undefined)
        backend.setKey(['a', 1])
        assert.equal(state.get(), 'a1')
      },
    },
    {
      claim: 'a key outside the range is refused, and so is state without a key',
      run: async () => {
        const backend = create(range(0, 0))
        const state = backend.state(valueState('seen', z.string()))
        assert.throws(() => state.get(), /MR-T01/)
        assert.throws(() => {
          for (let key = 0; key < 100; key++) backend.setKey(key)
        }, /range/)
      },
    },
    {
      claim: 'a list grows, is replaced, and what was read from it stays as it was',
      run: async () => {
        const backend = create(range())
        const state = backend.state(listState('visits', z.number()))
        backend.setKey('a')
        assert.deepEqual(state.get(), [])
        state.add(1)
        state.addAll([2, 3])
        const read = state.get()
        for (const item of read) state.add(item + 10)
        assert.deepEqual(read, [1, 2, 3])
        assert.deepEqual(state.get(), [1, 2, 3, 11, 12, 13])
        state.update([5])
        state.addAll([])
        assert.deepEqual(state.get(), [5])
        state.update([])
        assert.deepEqual(state.get(), [])
        assert.equal(backend.entryCount, 0)
      },
    },
    {
      claim: 'a map state holds entries by string or number, and a walk is not disturbed by changes',
      run: async () => {
        const backend = create(range())
        const byName = backend.state(mapState('byName', { key: 'string', value: person }))
        const byNumber = backend.state(mapState('byNumber', { key: 'number', value: z.string() }))
        backend.setKey('a')
        assert.equal(byName.get('x'), undefined)
        byName.put('x', { name: 'X', visits: 0 })
        byName.put('y', { name: 'Y', visits: 0 })
        byName.mutate('y', (value) => {
          value.visits = 3
        })
        byName.mutate('z', () => assert.fail('there is no entry'))
        for (const [key] of byName.entries()) {
          byName.delete(key)
          byName.put(`${key}${key}`, { name: key, visits: 1 })
        }
        assert.deepEqual([...byName.keys()].sort(), ['xx', 'yy'])
        assert.equal(byName.size, 2)
        assert.ok(byName.has('xx') && !byName.has('x'))
        byNumber.put(-0, 'zero')
        byNumber.put(1.5, 'more')
        assert.equal(byNumber.get(0), 'zero')
        assert.throws(() => byNumber.put(Number.NaN, 'none'), /MR-T07/)
        backend.setKey('b')
        assert.equal(byName.size, 0)
        assert.deepEqual(byName.entries(), [])
        backend.setKey('a')
        byName.clear()
        assert.equal(byName.size, 0)
        assert.equal(backend.entryCount, 2)
        byNumber.delete(0)
        byNumber.delete(1.5)
        assert.equal(backend.entryCount, 0)
      },
    },
    {
      claim: 'reducing and aggregating states combine what is added',
      run: async () => {
        const backend = create(range())
        const longest = backend.state(
          reducingState('longest', z.string(), (left, right) => (right.length > left.length ? right : left)),
        )
        const mean = backend.state(
          aggregatingState('mean', z.object({ sum: z.number(), count: z.number() }), {
            create: () => ({ sum: 0, count: 0 }),
            add: (accumulator, value: number) => {
              accumulator.sum += value
              accumulator.count++
              return accumulator
            },
            result: ({ sum, count }) => sum / count,
          }),
        )
        backend.setKey('a')
        assert.equal(longest.get(), undefined)
        assert.equal(mean.get(), undefined)
        for (const word of ['one', 'three', 'five']) longest.add(word)
        for (const value of [1, 2, 6]) mean.add(value)
        assert.equal(longest.get(), 'three')
        assert.equal(mean.get(), 3)
        longest.clear()
        mean.clear()
        assert.equal(longest.get(), undefined)
        assert.equal(mean.get(), undefined)
      },
    },
    {
      claim: 'a state without a schema holds any plain value',
      run: async () => {
        const backend = create(range())
        const state = backend.state(valueState<unknown>('anything'))
        backend.setKey('a')
        const value = { list: [1, 'two', null], nested: { deep: true } }
        state.update(value)
        assert.deepEqual(state.get(), value)
      },
    },
    {
      claim: 'the same state may be asked for twice, with another kind or schema it is refused',
      run: async () => {
        const backend = create(range())
        const first = backend.state(valueState('state', z.number()))
        const second = backend.state(valueState('state', z.number()))
        backend.setKey('a')
        first.update(4)
        assert.equal(second.get(), 4)
        assert.throws(() => backend.state(listState('state', z.number())), /MR-T01/)
        assert.throws(() => backend.state(valueState('state', z.string())), /MR-T01/)
        assert.throws(() => valueState(''), /MR-T01/)
      },
    },
  ]
}

function timerCases(create: CreateBackend): ConformanceCase[] {
  return [
    {
      claim: 'timers fire in order of time, each domain apart, with their key set',
      run: async () => {
        const backend = create(range())
        for (const [key, timestampMs] of [
          ['a', 30],
          ['b', 10],
          ['c', 20],
          [['d', 1], 15],
        ] as const) {
          backend.setKey(key)
          backend.timers.register('event', timestampMs)
          backend.timers.register('processing', 100 - timestampMs, 'later')
        }
        assert.equal(backend.nextTimer('event'), 10)
        assert.equal(backend.takeDue('event', 9), undefined)
        const first = backend.takeDue('event', 15)
        assert.deepEqual(first, { key: 'b', domain: 'event', timestampMs: 10, tag: '' })
        assert.equal(backend.currentKey, 'b')
        assert.deepEqual(backend.takeDue('event', 15)?.key, ['d', 1])
        assert.deepEqual(backend.currentKey, ['d', 1])
        assert.equal(backend.takeDue('event', 15), undefined)
        assert.deepEqual(
          drainTimers(backend, 'event').map((timer) => timer.timestampMs),
          [20, 30],
        )
        assert.deepEqual(
          drainTimers(backend, 'processing').map((timer) => timer.timestampMs),
          [70, 80, 85, 90],
        )
        assert.equal(backend.nextTimer('processing'), undefined)
        assert.equal(backend.entryCount, 0)
      },
    },
    {
      claim: 'registering a timer twice is registering it once; another tag, time or domain is another timer',
      run: async () => {
        const backend = create(range())
        backend.setKey('a')
        for (let round = 0; round < 2; round++) {
          for (let timestampMs = 0; timestampMs < 40; timestampMs++) {
            backend.timers.register('event', timestampMs)
            backend.timers.register('event', timestampMs, 'tag')
            backend.timers.register('processing', timestampMs)
          }
        }
        assert.equal(drainTimers(backend, 'event').length, 80)
        assert.equal(drainTimers(backend, 'processing').length, 40)
      },
    },
    {
      claim: 'a deleted timer does not fire, and can be registered again',
      run: async () => {
        const backend = create(range())
        for (const key of ['a', 'b']) {
          backend.setKey(key)
          for (let timestampMs = 0; timestampMs < 40; timestampMs++) backend.timers.register('event', timestampMs)
        }
        backend.setKey('a')
        for (let timestampMs = 0; timestampMs < 40; timestampMs += 2) backend.timers.delete('event', timestampMs)
        backend.timers.delete('event', 1, 'another tag')
        backend.timers.delete('processing', 1)
        backend.timers.register('event', 4)
        const fired = drainTimers(backend, 'event')
        assert.deepEqual(
          fired.filter((timer) => timer.key === 'a').map((timer) => timer.timestampMs),
          [1, 3, 4, ...Array.from({ length: 18 }, (_, index) => 5 + index * 2)],
        )
        assert.equal(fired.filter((timer) => timer.key === 'b').length, 40)
      },
    },
    {
      claim: 'a timer for no whole millisecond is refused',
      run: async () => {
        const backend = create(range())
        backend.setKey('a')
        assert.throws(() => backend.timers.register('event', Number.NaN), /MR-T07/)
        assert.throws(() => backend.timers.register('event', 0.5), /MR-T07/)
        assert.equal(backend.nextTimer('event'), undefined)
      },
    },
    {
      claim: 'without a restore nothing is overdue and no key has a watermark',
      run: async () => {
        const backend = create(range())
        backend.setKey('a')
        backend.setWatermark(1000)
        backend.timers.register('event', 5)
        assert.equal(backend.keyWatermark, MIN_WATERMARK)
        assert.equal(backend.restoredWatermark, MIN_WATERMARK)
        assert.equal(backend.takeOverdueOfRestore(), undefined)
      },
    },
  ]
}
