// Which operator windows need, and which windows, functions and triggers go together.

import type { StateDescriptor } from '../state/contract.ts'
import type { StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { TriggeredWindowOperator } from './triggered-window-operator.ts'
import type { AnyTrigger } from './trigger.ts'
import { eventTimeTrigger, processingTimeTrigger } from './triggers.ts'
import type { WindowAssigner } from './window-assigner.ts'
import type { WindowContents } from './window-contents.ts'
import { windowTimeOf } from './window-lifetime.ts'
import { WindowOperator, windowState, windowTimers } from './window-operator.ts'
import { listOfStates, triggeredWindowStates, triggeredWindowTimers } from './window-states.ts'

export interface WindowWorkSettings {
  readonly assigner: WindowAssigner
  /** undefined: windows fire at their end. */
  readonly trigger: AnyTrigger | undefined
  readonly contents: WindowContents
  /** undefined: none, and nothing was said. */
  readonly allowedLatenessMs: number | undefined
  readonly lateTag: string | undefined
}

export interface WindowWork {
  readonly create: () => StreamOperator
  readonly states: readonly StateDescriptor[]
  readonly timerMeaning: string
}

/** Throws MR-J56 to MR-J59 for what does not go together. */
export function windowWork(settings: WindowWorkSettings): WindowWork {
  const { assigner, contents, allowedLatenessMs = 0, lateTag } = settings
  if (settings.trigger === undefined && assigner.kind === 'sliding' && assigner.time === 'event') {
    const create = (): StreamOperator => new WindowOperator({ assigner, contents, allowedLatenessMs, lateTag })
    return { create, states: [windowState(assigner, contents)], timerMeaning: windowTimers(assigner) }
  }
  const trigger = triggerOf(settings)
  refuseLateness(settings)
  refuseUnmerged(assigner, trigger, contents)
  const states = triggeredWindowStates(assigner, trigger, contents)
  const parts = { assigner, trigger, contents, states, allowedLatenessMs, lateTag }
  return {
    create: () => new TriggeredWindowOperator(parts),
    states: listOfStates(states),
    timerMeaning: triggeredWindowTimers(assigner, trigger),
  }
}

function triggerOf({ assigner, trigger }: WindowWorkSettings): AnyTrigger {
  if (assigner.kind === 'global' && trigger === undefined) throw operatorError('MR-J57', 'It has no trigger.')
  const time = windowTimeOf(assigner)
  if (trigger === undefined) return time === 'event' ? eventTimeTrigger() : processingTimeTrigger()
  if (trigger.endOf !== undefined && trigger.endOf !== time) {
    const windows = assigner.kind === 'global' ? 'the global window' : `windows of ${time} time`
    throw operatorError('MR-J59', `The trigger '${trigger.name}' on ${windows}.`)
  }
  return trigger
}

function refuseLateness({ assigner, allowedLatenessMs, lateTag }: WindowWorkSettings): void {
  const windows = assigner.kind === 'global' ? 'the global window' : 'windows of processing time'
  if (assigner.kind !== 'global' && assigner.time === 'event') return
  if (allowedLatenessMs !== undefined)
    throw operatorError('MR-J58', `allowedLateness(${allowedLatenessMs}) on ${windows}.`)
  if (lateTag !== undefined) throw operatorError('MR-J58', `lateTo('${lateTag}') on ${windows}.`)
}

function refuseUnmerged(assigner: WindowAssigner, trigger: AnyTrigger, contents: WindowContents): void {
  if (assigner.kind !== 'session') return
  if (contents.merge === undefined) throw operatorError('MR-J56', 'The aggregate has no merge(left, right).')
  if (trigger.onMerge === undefined) throw operatorError('MR-J56', `The trigger '${trigger.name}' has no onMerge.`)
}
