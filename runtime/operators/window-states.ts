// What windows under a trigger keep in keyed state, each a map by the window's start.

import { z } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import type { MapState, StateDescriptor, TypedDescriptor } from '../state/contract.ts'
import { typeOfSchema } from './stream-schema.ts'
import type { AnyTrigger } from './trigger.ts'
import type { WindowAssigner } from './window-assigner.ts'
import type { WindowContents } from './window-contents.ts'

export interface TriggeredWindowStates {
  readonly contents: TypedDescriptor<MapState<number, unknown>>
  /** What the trigger remembers. */
  readonly trigger: TypedDescriptor<MapState<number, unknown>>
  /** Ends of sessions; other windows' ends are told by their starts. */
  readonly ends: TypedDescriptor<MapState<number, number>> | undefined
}

/** State of windows of another size, or under another trigger, is refused: their timers would find nothing, and they would never fire. */
export function triggeredWindowStates(
  assigner: WindowAssigner,
  trigger: AnyTrigger,
  contents: WindowContents,
): TriggeredWindowStates {
  const mapKeyMeaning = `starts of ${windowsUnder(assigner, trigger)}`
  const map = { kind: 'map', mapKey: 'number', mapKeyMeaning } as const
  return {
    contents: { ...map, name: 'windows', accumulators: true, value: contents.type },
    trigger: { ...map, name: 'trigger', value: typeOfSchema<unknown>('trigger', trigger.state) },
    ends:
      assigner.kind === 'session'
        ? { ...map, name: 'ends', value: typeInfoOf<unknown>('ends', z.number()) }
        : undefined,
  }
}

export function listOfStates({ contents, trigger, ends }: TriggeredWindowStates): StateDescriptor[] {
  return ends === undefined ? [contents, trigger] : [contents, trigger, ends]
}

export function triggeredWindowTimers(assigner: WindowAssigner, trigger: AnyTrigger): string {
  return `timers of ${windowsUnder(assigner, trigger)}`
}

function windowsUnder(assigner: WindowAssigner, { name }: AnyTrigger): string {
  return `${windowsIn(assigner)} under the trigger '${name}'`
}

function windowsIn(assigner: WindowAssigner): string {
  switch (assigner.kind) {
    case 'sliding':
      return `windows of ${assigner.sizeMs} ms of ${assigner.time} time`
    case 'session':
      return `sessions of ${assigner.time} time`
    case 'global':
      return 'the global window'
    default:
      return assigner satisfies never
  }
}
