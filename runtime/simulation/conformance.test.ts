// In calm weather the simulated stores and disks are held to the same text as the real ones: an honest fake is no other thing.

import { describe, it } from 'vitest'
import { fileSystemClaims, headStoreClaims, objectStoreClaims } from '../storage/conformance.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { SimDisk } from './disk.ts'
import { SimStore } from './store.ts'
import { World } from './world.ts'

/** Lets the world go on while a claim is looked into. */
async function within(world: World, claim: Promise<void>): Promise<void> {
  let ended = false
  const settled = claim.finally(() => (ended = true))
  // The claim's failure is heard below; here it only ends the run.
  settled.catch(() => undefined)
  await world.run(() => ended, { virtualMs: 600_000 })
  await settled
}

function newStore(world: World): SimStore {
  return new SimStore(world, { objects: new MemoryObjectStore(), head: new MemoryHeadStore() })
}

describe('the simulated object store', () => {
  for (const each of objectStoreClaims)
    it(each.claim, async () => {
      const world = new World(1)
      const store = newStore(world)
      const [one, other] = [store.objects(world.spawn('one')), store.objects(world.spawn('other'))]
      await within(
        world,
        each.holds(async () => ({ one, other })),
      )
    })
})

describe('the simulated HEAD store', () => {
  for (const each of headStoreClaims)
    it(each.claim, async () => {
      const world = new World(2)
      const store = newStore(world)
      const [one, other] = [store.head(world.spawn('one')), store.head(world.spawn('other'))]
      await within(
        world,
        each.holds(async () => ({ one, other })),
      )
    })
})

describe('the simulated disk', () => {
  for (const each of fileSystemClaims)
    it(each.claim, async () => {
      const world = new World(3)
      const machine = world.machine('host')
      const files = new SimDisk(machine).handle(machine.spawn('worker'))
      await within(
        world,
        each.holds(async () => ({ files, folder: '.' })),
      )
    })
})
