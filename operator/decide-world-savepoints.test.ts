import { expect, it } from 'vitest'
import { running } from './decide-story.ts'
import { checkSavepoints } from './decide-world-savepoints.ts'
import type { World } from './decide-world.ts'

/** A job that runs, with a Savepoint that a user has asked for. */
function withSavepoint(): World {
  const world = running()
  world.addSavepoint('mine')
  return world.run(() => world.savepoints[0]?.status?.state === 'completed')
}

/** A job of which spec.savepoints has made one. */
function withPeriodic(): World {
  const world = running()
  world.edit({ savepoints: { every: '20s', keep: { count: 1 } } })
  return world.run(() => world.savepoints.some(({ status }) => status?.state === 'completed'))
}

it('what an operator does with savepoints passes, also where it takes away what is beyond what is kept', () => {
  checkSavepoints(withSavepoint())
  const world = withPeriodic()
  world.run(() => {
    checkSavepoints(world)
    return world.deeds.some(({ deed }) => deed === 'deleted savepoint')
  })
  checkSavepoints(world)
})

it('a completion that is reported of what was never written is seen', () => {
  const world = running()
  world.addSavepoint('mine')
  const path = 's3://bucket/savepoint-99'
  world.act({ type: 'recordSavepoint', of: world.savepoints[0]!, state: 'completed', path })
  expect(() => checkSavepoints(world)).toThrow('Savepoint mine is at s3://bucket/savepoint-99, which was never written')
})

it("a deletion of a user's savepoint, whatever is to be kept, is seen", () => {
  const world = withSavepoint()
  world.act({ type: 'delete', of: world.savepoints[0]!, force: false })
  expect(() => checkSavepoints(world)).toThrow('Savepoint mine was deleted unasked')
})

it('a deletion of what the job begins from is seen', () => {
  const world = withPeriodic()
  const periodic = world.savepoints.find(({ status }) => status?.state === 'completed')!
  world.head!.completed.length = 0
  world.head!.restoredFrom = { id: 9, kind: 'savepoint', start: 1, path: periodic.status!.path! }
  world.act({ type: 'delete', of: periodic, force: false })
  expect(() => checkSavepoints(world)).toThrow(`Savepoint ${periodic.name} was deleted, and the job begins from it`)
})

it('a deletion of what is not yet answered is seen: nobody would know of its files', () => {
  const world = running()
  world.edit({ savepoints: { every: '20s', keep: { count: 1 } } })
  world.savepointsHang = true
  world.run(() => world.savepoints.length > 0)
  world.act({ type: 'delete', of: world.savepoints[0]!, force: false })
  expect(() => checkSavepoints(world)).toThrow('was deleted before it was answered')
})
