// Joins of two keyed streams by how far apart in event time their records are.

import { operatorError } from '../operators/errors.ts'
import { INTERVAL_JOIN_TIMERS, IntervalJoinOperator, intervalJoinState } from '../operators/interval-join.ts'
import type { IntervalJoinFunction } from '../operators/interval-join.ts'
import type { OutputTag } from '../operators/output-tag.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import { isDuration } from '../operators/window-assigner.ts'
import type { TypeInfo } from '../record/contract.ts'
import { commonType } from './common-type.ts'
import { inputsOf } from './connected-stream.ts'
import type { KeyedConnectedParts } from './keyed-connected-stream.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'
import { listType } from './windowed-stream.ts'

export interface IntervalOptions {
  /** Records exactly `lowerMs` apart are not joined. */
  readonly lowerExclusive?: boolean
  readonly upperExclusive?: boolean
}

export class IntervalJoin<K, Left, Right> {
  readonly #parts: KeyedConnectedParts

  constructor(parts: KeyedConnectedParts) {
    this.#parts = parts
  }

  /**
   * Joins left and right records of one key where left time + lowerMs ≤ right time ≤ left time + upperMs. Both may be negative:
   * `between(-60_000, 0)` joins a record with those of the minute before. Throws MR-J81.
   */
  between(lowerMs: number, upperMs: number, options: IntervalOptions = {}): BoundedIntervalJoin<K, Left, Right> {
    const { lowerExclusive = false, upperExclusive = false } = options
    // Event times are whole milliseconds.
    const interval = { lowerMs: lowerMs + (lowerExclusive ? 1 : 0), upperMs: upperMs - (upperExclusive ? 1 : 0) }
    const valid = isBound(lowerMs) && isBound(upperMs) && interval.lowerMs <= interval.upperMs
    if (!valid) throw operatorError('MR-J81', `Given: between(${lowerMs}, ${upperMs}, ${JSON.stringify(options)}).`)
    return new BoundedIntervalJoin({ ...this.#parts, ...interval })
  }
}

interface BoundedParts extends KeyedConnectedParts {
  readonly lowerMs: number
  readonly upperMs: number
  readonly lateLeftTag?: string
  readonly lateRightTag?: string
}

export class BoundedIntervalJoin<K, Left, Right> {
  readonly #parts: BoundedParts

  constructor(parts: BoundedParts) {
    this.#parts = parts
  }

  /** Where records of the left stream go that the watermark has passed; without it they are counted and dropped. Read them by `sideOutput`. */
  lateLeftTo(tag: OutputTag<Left>): BoundedIntervalJoin<K, Left, Right> {
    return new BoundedIntervalJoin({ ...this.#parts, lateLeftTag: tag.name })
  }

  lateRightTo(tag: OutputTag<Right>): BoundedIntervalJoin<K, Left, Right> {
    return new BoundedIntervalJoin({ ...this.#parts, lateRightTag: tag.name })
  }

  /** Called as soon as both records of a pair are there; what it emits has the later one's event time. The schema types `emit`. */
  process<Out = unknown>(
    process: IntervalJoinFunction<K, Left, Right, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    const { builder, first, second, functions, lowerMs, upperMs, lateLeftTag, lateRightTag } = this.#parts
    const left = intervalJoinState('left', listType(commonType(first)))
    const right = intervalJoinState('right', listType(commonType(second)))
    const lateTags = { left: lateLeftTag, right: lateRightTag }
    const join = process as unknown as IntervalJoinFunction<unknown, unknown, unknown, unknown>
    const settings = { lowerMs, upperMs, join, states: { left, right }, lateTags }
    return builder.operator<Out>(
      {
        kind: 'intervalJoin',
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create: () => new IntervalJoinOperator(settings) },
        output: typeOfSchema('join output', options.schema) as TypeInfo<unknown>,
        stateful: true,
        states: [left, right],
        timerMeaning: INTERVAL_JOIN_TIMERS,
      },
      { ...functions, process },
    )
  }
}

function isBound(ms: number): boolean {
  return ms === 0 || isDuration(Math.abs(ms))
}
