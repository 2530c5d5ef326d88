// Joins and coGroups of two streams by key and window: `left.join(right).where(…).equalTo(…).window(…).apply(…)`.

import { z } from 'zod'
import { coGroupWork } from '../operators/co-group.ts'
import { coGroupResults, joinResults } from '../operators/co-group-contents.ts'
import type { CoGroupFunction, CoGroupResults, JoinFunction } from '../operators/co-group-contents.ts'
import type { OutputTag } from '../operators/output-tag.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { AnyTrigger, Trigger } from '../operators/trigger.ts'
import { checkAllowedLateness } from '../operators/window-assigner.ts'
import type { WindowAssigner } from '../operators/window-assigner.ts'
import type { Key, TypeInfo } from '../record/contract.ts'
import { typeInfoOf } from '../record/type-info.ts'
import type { DeepReadonly } from '../state/contract.ts'
import { commonType } from './common-type.ts'
import { inputsOf } from './connected-stream.ts'
import type { ConnectedParts } from './connected-stream.ts'
import { jobError } from './errors.ts'
import { keyedInputs } from './key-selector.ts'
import type { KeyedConnectedParts } from './keyed-connected-stream.ts'
import { callerLocation } from './location.ts'
import { functionsOf } from './stream-builder.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'
import { triggerFunctions } from './windowed-stream.ts'

/** A join's function gets a pair, a coGroup's all records of the key and window. */
interface Functions<K, Left, Right, Out> {
  readonly join: JoinFunction<K, Left, Right, Out>
  readonly coGroup: CoGroupFunction<K, Left, Right, Out>
}

type Kind = keyof Functions<never, never, never, never>

const resultsOf: Readonly<Record<Kind, (apply: never) => CoGroupResults>> = {
  join: joinResults,
  coGroup: coGroupResults,
}

export class UnkeyedJoin<Of extends Kind, Left, Right> {
  readonly #kind: Of
  readonly #parts: ConnectedParts

  constructor(kind: Of, parts: ConnectedParts) {
    this.#kind = kind
    this.#parts = parts
  }

  /** The key of the left stream's records. */
  where<const K extends Key>(selector: (value: DeepReadonly<Left>) => K): HalfKeyedJoin<Of, K, Left, Right> {
    const first = keyedInputs(this.#parts.first, selector)
    return new HalfKeyedJoin(this.#kind, { ...this.#parts, first, functions: { where: selector } })
  }
}

export class HalfKeyedJoin<Of extends Kind, K, Left, Right> {
  readonly #kind: Of
  readonly #parts: KeyedConnectedParts

  constructor(kind: Of, parts: KeyedConnectedParts) {
    this.#kind = kind
    this.#parts = parts
  }

  /** The key of the right stream's records; it is compared as that of the left one is: 1 and '1' are two keys. */
  equalTo(selector: (value: DeepReadonly<Right>) => K): KeyedJoin<Of, K, Left, Right> {
    const second = keyedInputs(this.#parts.second, selector)
    const functions = { ...this.#parts.functions, equalTo: selector }
    return new KeyedJoin(this.#kind, { ...this.#parts, second, functions })
  }
}

export class KeyedJoin<Of extends Kind, K, Left, Right> {
  readonly #kind: Of
  readonly #parts: KeyedConnectedParts

  constructor(kind: Of, parts: KeyedConnectedParts) {
    this.#kind = kind
    this.#parts = parts
  }

  /** Records meet that have one key and are in one window. */
  window(assigner: WindowAssigner): WindowedJoin<Of, K, Left, Right> {
    if (assigner === undefined) throw jobError('MR-J13', `The ${this.#kind} at ${callerLocation()} has no windows.`)
    return new WindowedJoin(this.#kind, { ...this.#parts, assigner })
  }
}

interface WindowedParts extends KeyedConnectedParts {
  readonly assigner: WindowAssigner
  readonly trigger?: AnyTrigger
  readonly allowedLatenessMs?: number
  readonly lateLeftTag?: string
  readonly lateRightTag?: string
}

export class WindowedJoin<Of extends Kind, K, Left, Right> {
  readonly #kind: Of
  readonly #parts: WindowedParts

  constructor(kind: Of, parts: WindowedParts) {
    this.#kind = kind
    this.#parts = parts
  }

  /** When windows fire and are emptied, instead of once at their end. A global window needs one. */
  trigger<State>(trigger: Trigger<Left | Right, State>): WindowedJoin<Of, K, Left, Right> {
    return this.#with({ trigger })
  }

  /** Of event-time windows. A window that has fired takes records for so much longer, and fires again, as a whole, for each. Default 0. */
  allowedLateness(allowedLatenessMs: number): WindowedJoin<Of, K, Left, Right> {
    return this.#with({ allowedLatenessMs: checkAllowedLateness(allowedLatenessMs) })
  }

  /** Where records of the left stream go that are too late for all their windows; without it they are counted and dropped. Read them by `sideOutput`. */
  lateLeftTo(tag: OutputTag<Left>): WindowedJoin<Of, K, Left, Right> {
    return this.#with({ lateLeftTag: tag.name })
  }

  lateRightTo(tag: OutputTag<Right>): WindowedJoin<Of, K, Left, Right> {
    return this.#with({ lateRightTag: tag.name })
  }

  /**
   * Of a join: one record for each pair of a left and a right record of the key and window. Of a coGroup: any number of results from all
   * records of the key and window, of which one side may have none. Both lists wait in state until the window fires.
   */
  apply<Out>(
    apply: Functions<K, Left, Right, NoInfer<Out | DeepReadonly<Out>>>[Of],
    options: { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  apply<Out>(apply: Functions<K, Left, Right, Out>[Of]): OperatorStream<Out>
  apply<Out>(apply: unknown, options: OutputOptions<Out> = {}): OperatorStream<Out> {
    const { builder, first, second, assigner, trigger, allowedLatenessMs, lateLeftTag, lateRightTag } = this.#parts
    const type = sidesType(commonType(first), commonType(second))
    const results = resultsOf[this.#kind](apply as never)
    const lateTags = { left: lateLeftTag, right: lateRightTag }
    const { create, states, timerMeaning } = coGroupWork({
      type,
      results,
      assigner,
      trigger,
      allowedLatenessMs,
      lateTags,
    })
    const ofTrigger = trigger === undefined ? {} : functionsOf(trigger, triggerFunctions)
    return builder.operator<Out>(
      {
        kind: this.#kind,
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create },
        output: typeOfSchema(`${this.#kind} output`, options.schema) as TypeInfo<unknown>,
        stateful: true,
        states,
        timerMeaning,
      },
      { ...this.#parts.functions, ...ofTrigger, apply },
    )
  }

  #with(more: Partial<WindowedParts>): WindowedJoin<Of, K, Left, Right> {
    return new WindowedJoin(this.#kind, { ...this.#parts, ...more })
  }
}

/** Without one of the schemas the lists describe themselves. */
function sidesType(left: TypeInfo<unknown>, right: TypeInfo<unknown>): TypeInfo<unknown> {
  const name = `${left.name} and ${right.name}`
  if (left.schema === undefined || right.schema === undefined) return typeInfoOf<unknown>(name)
  return typeInfoOf<unknown>(name, z.object({ left: z.array(left.schema), right: z.array(right.schema) }))
}
