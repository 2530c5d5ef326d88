import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { slotId } from '../base/ids.ts'
import type { SlotId } from '../base/ids.ts'
import { hello, one, options, start } from './test-workers.ts'
import { WorkerRegistry } from './worker-registry.ts'

describe('in whatever order things come', () => {
  type Step =
    | { readonly kind: 'connect'; readonly worker: number; readonly slots: number }
    | { readonly kind: 'close' | 'leave' | 'report'; readonly worker: number }
    | { readonly kind: 'start' | 'terminate' | 'die' | 'answer' | 'registered'; readonly slot: number }
    | { readonly kind: 'pass'; readonly ms: number }
  const worker = fc.nat(2)
  const slot = fc.nat(3)
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant('connect' as const), worker, slots: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constantFrom('close' as const, 'leave' as const, 'report' as const), worker }),
    fc.record({
      kind: fc.constantFrom(
        'start' as const,
        'terminate' as const,
        'die' as const,
        'answer' as const,
        'registered' as const,
      ),
      slot,
    }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(70_000) }),
  )

  it('no slot runs in two workers, no worker has more than it offers, and every termination is answered', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 80, size: 'max' }), (steps) => {
        const registry = new WorkerRegistry(options)
        registry.begin(one, { survivors: false, nowMs: 0 })
        let nowMs = 0
        let connections = 0
        /** What real workers would run: by connection. */
        const threads = new Map<number, Set<SlotId>>()
        const connectionOf = new Map<number, number>()
        const offers = new Map<number, number>()
        const leaving = new Set<number>()
        const lives = new Map<number, number>()
        const awaited = new Set<SlotId>()
        const known = new Set<SlotId>()
        const carryOut = (): void => {
          for (const effect of registry.effects.splice(0)) {
            if (effect.type === 'send' && effect.message.type === 'startSlot') {
              const { slot } = effect.message
              for (const others of threads.values()) expect(others.has(slot)).toBe(false)
              expect(leaving.has(effect.connection)).toBe(false)
              const own = threads.get(effect.connection)!
              own.add(slot)
              expect(own.size).toBeLessThanOrEqual(offers.get(effect.connection)!)
            }
            if (effect.type === 'close') threads.delete(effect.connection)
            if (effect.type === 'ended') {
              awaited.delete(effect.slot)
              known.delete(effect.slot)
              for (const others of threads.values()) expect(others.has(effect.slot)).toBe(false)
            }
          }
        }
        const nameOf = (slot: number): SlotId => slotId(`${slot}#1.${lives.get(slot) ?? 0}`)
        const act = (step: Step): void => {
          switch (step.kind) {
            case 'connect': {
              const id = ++connections
              threads.set(id, new Set())
              offers.set(id, step.slots)
              connectionOf.set(step.worker, id)
              registry.connected(id, 'host', nowMs)
              const instance = `i-${step.worker}`
              return registry.received(id, hello({ worker: `w-${step.worker}`, instance, slots: step.slots }), nowMs)
            }
            case 'close': {
              const id = connectionOf.get(step.worker) ?? 0
              threads.delete(id)
              return registry.closed(id, 'reset', nowMs)
            }
            case 'leave': {
              const id = connectionOf.get(step.worker) ?? 0
              leaving.add(id)
              return registry.received(id, { type: 'leaving', graceMs: 1_000 }, nowMs)
            }
            case 'report':
              registry.reportLost(`w-${step.worker}`, 'gone', nowMs)
              return
            case 'start': {
              lives.set(step.slot, (lives.get(step.slot) ?? 0) + 1)
              known.add(nameOf(step.slot))
              return registry.start(nameOf(step.slot), start, nowMs)
            }
            case 'terminate':
              awaited.add(nameOf(step.slot))
              return registry.terminate(nameOf(step.slot))
            case 'registered':
              return registry.slotRegistered(nameOf(step.slot))
            case 'die':
            case 'answer': {
              const slot = nameOf(step.slot)
              for (const [id, own] of threads)
                if (own.delete(slot))
                  registry.received(id, { type: 'slotEnded', slot, reason: 'its thread ended' }, nowMs)
              return
            }
            case 'pass': {
              const untilMs = nowMs + step.ms
              while (nowMs < untilMs) {
                nowMs = Math.min(untilMs, Math.max(nowMs + 1, registry.wakeAtMs ?? untilMs))
                for (const id of threads.keys()) registry.received(id, { type: 'heartbeat' }, nowMs)
                registry.tick(nowMs)
                carryOut()
              }
              return
            }
            default:
              return step satisfies never
          }
        }
        for (const step of steps) {
          act(step)
          carryOut()
        }
        // All workers go away: nothing stays unanswered, and nothing stays with them.
        for (const id of threads.keys()) registry.closed(id, 'reset', nowMs)
        threads.clear()
        carryOut()
        expect([...awaited]).toEqual([])
        for (const slot of known) registry.terminate(slot)
        carryOut()
        expect([...known]).toEqual([])
        expect(registry.slotsOffered).toBe(0)
        registry.tick(nowMs + 1_000_000)
        expect(registry.wakeAtMs).toBe(undefined)
      }),
      { numRuns: 300 },
    )
  })
})
