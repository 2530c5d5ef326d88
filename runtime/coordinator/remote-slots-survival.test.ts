import { describe, expect, it } from 'vitest'
import { slotId } from '../base/ids.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { SurvivingSlot } from '../control/contract.ts'
import { Survival } from './remote-slots-survival.ts'

const link = { send: () => undefined, onMessage: () => undefined, onLost: () => undefined, close: () => undefined }

function survivor(name: string): SurvivingSlot {
  const slot = slotId(name)
  return {
    slot,
    registered: { type: 'registered', version: CONTROL_VERSION, slot, graphHash: 'hash', tasks: [] },
    link,
  }
}

const survival = () => new Survival({ enough: (found) => found.length === 2, slotsNeeded: 2 })
const room = { slotsOffered: 9, pending: false }

describe('the wait for survivors', () => {
  it('is over when all that can be hoped for has reported, and not before', () => {
    const wait = survival()
    wait.add(survivor('0#1.1'))
    expect(wait.isEnough(room)).toBe(false)
    wait.add(survivor('1#1.1'))
    expect(wait.isEnough({ slotsOffered: 0, pending: true })).toBe(true)
  })

  it('ends with room for the whole job only once every worker has had the time to come: spare ones may be first', () => {
    const wait = survival()
    expect(wait.isEnough(room)).toBe(false)
    wait.roomIsEnough = true
    expect(wait.isEnough(room)).toBe(true)
    expect(wait.isEnough({ ...room, pending: true })).toBe(false)
    expect(wait.isEnough({ ...room, slotsOffered: 1 })).toBe(false)
  })

  it('gives who is there at its end, and not who was lost meanwhile', async () => {
    const wait = survival()
    wait.add(survivor('0#1.1'))
    wait.add(survivor('1#1.1'))
    wait.lost(slotId('0#1.1'))
    wait.end()
    expect((await wait.result).map(({ slot }) => slot)).toEqual(['1#1.1'])
  })
})
