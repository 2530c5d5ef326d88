// How the tests of decide tell a story: a job that runs, what happens, and what is seen then.

import type { Condition, ConditionType, Decision, StreamJobStatus } from './contract.ts'
import { World } from './decide-world.ts'
import type { Deed, Spec } from './decide-world.ts'

export const program = { module: { configMap: { name: 'code', key: 'job.ts' } } }

export const isQuiet = (world: World): boolean =>
  world.status?.transition === undefined && world.decide().kind === 'wait'

export function running(spec: Spec = {}, prepare?: (world: World) => void): World {
  const world = new World(spec)
  prepare?.(world)
  world.run(() => isQuiet(world) && world.status?.phase === 'RUNNING')
  world.deeds.length = 0
  return world
}

export const reaches = (world: World, phase: StreamJobStatus['phase'], start: number): World =>
  world.run(() => isQuiet(world) && world.status!.phase === phase && world.status!.start === start)

export function condition(world: World, type: ConditionType): Pick<Condition, 'status' | 'reason' | 'message'> {
  const { status, reason, message } = world.status!.conditions.find((each) => each.type === type)!
  return { status, reason, message }
}

export const deeds = <Kind extends Deed['deed']>(world: World, kind: Kind) =>
  world.deeds.filter((deed): deed is Extract<Deed, { deed: Kind }> => deed.deed === kind)
export const events = (world: World): string[] => deeds(world, 'event').map(({ reason }) => reason)
export const begins = (world: World) => deeds(world, 'began').map(({ start, from }) => ({ start, from }))
export const stay = (world: World, seconds: number): World => {
  for (let second = 0; second < seconds; second++) {
    world.settle()
    world.pass(1_000)
  }
  world.settle()
  return world
}
/** Decision by decision, also to a moment that passes before the operator waits. */
export function steps(world: World, isThere: () => boolean): World {
  for (let moment = 0; !isThere(); moment++) {
    if (moment === 400) throw new Error(`not there: ${JSON.stringify(world.status)}`)
    if (world.reconcile().kind === 'wait') world.pass(500)
  }
  return world
}
export function actions(decision: Decision): string[] {
  return decision.kind === 'act' ? decision.actions.map(({ type }) => type) : [decision.kind]
}
