// Subtasks begin together: on the coordinator's word, once all of the job have restored, also when that coordinator dies over it.

import { describe, expect, it } from 'vitest'
import { pause } from '../base/deadline.ts'
import type { SlotId } from '../base/ids.ts'
import type { ToSlot } from '../control/contract.ts'
import { Cluster, perSplit, splits } from '../../tests/support/coordinator-cluster.ts'

/** Notes what each slot is told, by type. */
function wordsTo(cluster: Cluster): (slot: SlotId) => ToSlot['type'][] {
  const words = new Map<SlotId, ToSlot['type'][]>()
  cluster.losesWord = ({ type }, slot) => {
    words.set(slot, [...(words.get(slot) ?? []), type])
    return false
  }
  return (slot) => words.get(slot) ?? []
}

describe('the subtasks of a job', () => {
  it('are told to begin when all run, before any trigger, and once more whenever a region has restarted', async () => {
    const cluster = new Cluster()
    const words = wordsTo(cluster)
    const run = cluster.coordinator({ regions: true }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 1)
    const [lost, other] = [...cluster.slots.keys()] as [SlotId, SlotId]
    for (const slot of [lost, other])
      expect(
        words(slot)
          .filter((type) => ['deploy', 'begin', 'trigger'].includes(type))
          .slice(0, 3),
      ).toEqual(['deploy', 'begin', 'trigger'])
    cluster.slots.get(lost)!.end('its thread ended')
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    const fresh = [...cluster.slots.keys()].find((slot) => slot !== other)!
    expect([other, fresh].map((slot) => words(slot).filter((type) => type === 'begin').length)).toEqual([2, 1])
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('of another region run on while one that restarts has not restored', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ regions: true }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 1)
    const [lost] = [...cluster.slots.keys()]
    cluster.losesWord = ({ type }) => type === 'deploy'
    cluster.slots.get(lost!)!.end('its thread ended')
    const before = cluster.read
    await cluster.pass(200)
    expect(cluster.read).toBeGreaterThan(before)
    cluster.losesWord = () => false
    const [, fresh] = [...cluster.slots.keys()]
    cluster.slots.get(fresh!)!.end('its thread ended')
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it.each([
    ['none', 0],
    ['only one', 1],
  ])(
    'of which %s heard it from a coordinator that died are told by the next one: nothing restarts, nothing waits for ever',
    async (_, heard) => {
      const cluster = new Cluster()
      cluster.adopts = true
      const told = new Set<SlotId>()
      cluster.losesWord = ({ type }, slot) => {
        if (type === 'begin' && told.size < heard) told.add(slot)
        return type === 'trigger' || (type === 'begin' && !told.has(slot))
      }
      const first = cluster.coordinator({ regions: true })
      const run = first.run()
      await cluster.pass(60_000, () => first.execution?.allRunning === true)
      await cluster.pass(500)
      expect(cluster.read > 0).toBe(heard > 0)
      expect(cluster.read).toBeLessThan(perSplit)
      const lost = cluster.loseCoordinator(run)
      first.suspend()
      await lost
      const slots = [...cluster.slots.keys()]
      expect(await cluster.ended(cluster.coordinator({ regions: true }).run())).toEqual({ kind: 'finished' })
      cluster.expectExact()
      expect(cluster.read, 'nothing was read twice').toBe(splits * perSplit)
      expect([cluster.restarts, slots.length]).toEqual([[], 2])
    },
  )

  it('may be cancelled, suspended and stopped while they wait: at once', async () => {
    for (const how of ['cancel', 'suspend'] as const) {
      const cluster = new Cluster()
      cluster.losesWord = ({ type }) => type === 'begin'
      const coordinator = cluster.coordinator()
      const run = coordinator.run()
      await cluster.pass(60_000, () => coordinator.execution?.allRunning === true)
      if (how === 'cancel') coordinator.cancel()
      else coordinator.suspend()
      expect(await cluster.ended(run, 1_000)).toMatchObject({ kind: how === 'cancel' ? 'cancelled' : 'suspended' })
      expect([cluster.read, cluster.slots.size]).toEqual([0, 0])
    }
  })

  it('are stopped with a savepoint that was asked for before they began', async () => {
    const cluster = new Cluster()
    cluster.onEnumeratorStart = () => pause(cluster.environment.clock, 1_000)
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => coordinator.execution !== undefined)
    expect(coordinator.execution!.allRunning).toBe(false)
    const stopped = coordinator.stop({ drain: false })
    expect(await cluster.answerOf(stopped)).toMatchObject({ outcome: 'completed' })
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped' })
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })
})
