// Calls a trigger's functions, and holds them to what they may give.

import type { OperatorContext } from './contract.ts'
import { operatorError } from './errors.ts'
import type { RunningTriggerContext } from './trigger-context.ts'
import type { AnyTrigger, TriggerResult } from './trigger.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'

export class TriggerCalls {
  readonly #trigger: AnyTrigger
  readonly #context: OperatorContext

  constructor(trigger: AnyTrigger, context: OperatorContext) {
    this.#trigger = trigger
    this.#context = context
  }

  onRecord(value: unknown, context: RunningTriggerContext): TriggerResult {
    try {
      return this.#checked('onRecord', this.#trigger.onRecord(value, context))
    } catch (error) {
      throw userError(this.#context, "the trigger's onRecord", error)
    }
  }

  onEnd(context: RunningTriggerContext): TriggerResult {
    try {
      return this.#checked('onEnd', this.#trigger.onEnd?.(context) ?? 'continue')
    } catch (error) {
      throw userError(this.#context, "the trigger's onEnd", error)
    }
  }

  onEventTime(timestampMs: number, context: RunningTriggerContext): TriggerResult {
    try {
      return this.#checked('onEventTime', this.#trigger.onEventTime?.(timestampMs, context) ?? 'continue')
    } catch (error) {
      throw userError(this.#context, "the trigger's onEventTime", error)
    }
  }

  onProcessingTime(timestampMs: number, context: RunningTriggerContext): TriggerResult {
    try {
      return this.#checked('onProcessingTime', this.#trigger.onProcessingTime?.(timestampMs, context) ?? 'continue')
    } catch (error) {
      throw userError(this.#context, "the trigger's onProcessingTime", error)
    }
  }

  onMerge(merged: readonly unknown[], context: RunningTriggerContext): void {
    try {
      this.#refusePromise('onMerge', this.#trigger.onMerge!(merged, context))
    } catch (error) {
      throw userError(this.#context, "the trigger's onMerge", error)
    }
  }

  clear(context: RunningTriggerContext): void {
    try {
      this.#refusePromise('clear', this.#trigger.clear?.(context))
    } catch (error) {
      throw userError(this.#context, "the trigger's clear", error)
    }
  }

  #checked(call: string, result: unknown): TriggerResult {
    if (results.has(result)) return result as TriggerResult
    this.#refusePromise(call, result)
    throw operatorError('MR-J55', `The trigger's ${call} of ${describe(this.#context)} gave ${String(result)}.`)
  }

  #refusePromise(call: string, result: unknown): void {
    if (isPromise(result)) throw promiseError(this.#context, `the trigger's ${call}`)
  }
}

const results: ReadonlySet<unknown> = new Set<TriggerResult>(['continue', 'fire', 'purge', 'fire and purge'])
