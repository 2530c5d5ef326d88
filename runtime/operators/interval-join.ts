// Joins each record with those of the other stream whose event time is near its own. Both sides wait in keyed map state by event time,
// until the watermark says that nothing can come any more that they could be joined with.

import { NO_TIMESTAMP } from '../record/element.ts'
import type { TypeInfo } from '../record/contract.ts'
import type {
  DeepReadonly,
  DueTimer,
  KeyedStateBackend,
  MapState,
  StateDescriptor,
  TypedDescriptor,
} from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { keyedBackendOf } from './keyed-process.ts'
import { RunningContext } from './process-context.ts'
import type { ProcessContext } from './process-context.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'

/** `timestamp`, and that of what is emitted, is the larger one of the pair. */
export interface IntervalJoinContext<K, Out> extends ProcessContext<Out> {
  readonly key: K
  readonly leftTimestamp: number
  readonly rightTimestamp: number
}

/** Called once for each pair, in no order between those of one record. */
export type IntervalJoinFunction<K, Left, Right, Out> = (
  left: DeepReadonly<Left>,
  right: DeepReadonly<Right>,
  context: IntervalJoinContext<K, Out>,
) => void

export interface IntervalJoinSettings {
  /** A pair's right record is so many ms after its left one, at least and at most; both belong to the interval. */
  readonly lowerMs: number
  readonly upperMs: number
  readonly join: IntervalJoinFunction<unknown, unknown, unknown, unknown>
  readonly states: { readonly left: StateDescriptor; readonly right: StateDescriptor }
  /** Side outputs of late records; undefined: they are counted and dropped. */
  readonly lateTags: { readonly left: string | undefined; readonly right: string | undefined }
}

export const INTERVAL_JOIN_TIMERS = 'ends of the wait of an interval join'

/** `list` is of the list of all records of one event time. */
export function intervalJoinState(side: 'left' | 'right', list: TypeInfo<unknown>): StateDescriptor {
  return { kind: 'map', name: side, mapKey: 'number', accumulators: true, value: list }
}

interface Side {
  readonly name: 'left' | 'right'
  /** Records of the other side are joined whose time is so many ms after a record's own; when the last of them has passed, it goes. */
  readonly fromMs: number
  readonly untilMs: number
  readonly timerTag: string
  readonly lateTag: string | undefined
  waiting: MapState<number, unknown[]>
}

export class IntervalJoinOperator implements StreamOperator {
  readonly #settings: IntervalJoinSettings
  readonly #left: Side
  readonly #right: Side
  #context!: OperatorContext
  #output!: Output<unknown>
  #backend!: KeyedStateBackend
  #pair!: PairContext

  constructor(settings: IntervalJoinSettings) {
    const { lowerMs, upperMs } = settings
    this.#settings = settings
    this.#left = sideOf('left', { fromMs: lowerMs, untilMs: upperMs }, settings)
    this.#right = sideOf('right', { fromMs: -upperMs, untilMs: -lowerMs }, settings)
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
    this.#backend = keyedBackendOf(context)
    this.#pair = new PairContext(context, output, this.#backend)
    for (const side of [this.#left, this.#right]) {
      const descriptor: TypedDescriptor<MapState<number, unknown[]>> = this.#settings.states[side.name]
      side.waiting = this.#backend.state(descriptor)
    }
  }

  process(value: unknown, timestamp: number): void {
    if (!this.#take(this.#left, value, timestamp)) return
    const { fromMs, untilMs } = this.#left
    for (const [time, others] of this.#right.waiting.entries()) {
      if (time < timestamp + fromMs || time > timestamp + untilMs) continue
      this.#pair.moveToPair(timestamp, time)
      for (const other of others) this.#join(value, other)
    }
  }

  processSecond(value: unknown, timestamp: number): void {
    if (!this.#take(this.#right, value, timestamp)) return
    const { fromMs, untilMs } = this.#right
    for (const [time, others] of this.#left.waiting.entries()) {
      if (time < timestamp + fromMs || time > timestamp + untilMs) continue
      this.#pair.moveToPair(time, timestamp)
      for (const other of others) this.#join(other, value)
    }
  }

  onTimer({ timestampMs, tag }: DueTimer): void {
    const [name, untilMs] = tag.split(' ')
    const side = name === 'left' ? this.#left : this.#right
    const time = timestampMs - Number(untilMs)
    // After a restore the job may have another interval than the one under which the timer was registered.
    if (Number(untilMs) < side.untilMs) this.#registerTimer(side, time)
    else side.waiting.delete(time)
  }

  /** False: it is late. */
  #take(side: Side, value: unknown, timestamp: number): boolean {
    if (timestamp === NO_TIMESTAMP) throw operatorError('MR-J80', `At ${describe(this.#context)}.`)
    // Rule 27: what was late before a restore stays late.
    const watermark = Math.max(this.#context.currentWatermark(), this.#backend.keyWatermark)
    if (timestamp <= watermark) {
      this.#refuseLate(side, value, timestamp)
      return false
    }
    // Else all that it could be joined with is here already.
    if (timestamp + side.untilMs > watermark) this.#keep(side, value, timestamp)
    return true
  }

  #keep(side: Side, value: unknown, timestamp: number): void {
    if (side.waiting.has(timestamp)) side.waiting.mutate(timestamp, (values) => void values.push(value))
    else {
      side.waiting.put(timestamp, [value])
      this.#registerTimer(side, timestamp)
    }
  }

  #registerTimer(side: Side, time: number): void {
    this.#backend.timers.register('event', time + side.untilMs, side.timerTag)
  }

  #join(left: unknown, right: unknown): void {
    let result: unknown
    try {
      result = this.#settings.join(left, right, this.#pair)
    } catch (error) {
      throw userError(this.#context, 'the join function', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'the join function')
  }

  #refuseLate({ lateTag }: Side, value: unknown, timestamp: number): void {
    this.#context.metrics.add('late_records_total', 1)
    if (lateTag !== undefined) this.#output.emitTo(lateTag, value, timestamp)
  }
}

function sideOf(
  name: Side['name'],
  interval: { readonly fromMs: number; readonly untilMs: number },
  { lateTags }: IntervalJoinSettings,
): Side {
  const timerTag = `${name} ${interval.untilMs}`
  return { name, ...interval, timerTag, lateTag: lateTags[name], waiting: undefined! }
}

class PairContext extends RunningContext implements IntervalJoinContext<unknown, unknown> {
  leftTimestamp: number = NO_TIMESTAMP
  rightTimestamp: number = NO_TIMESTAMP
  readonly #backend: KeyedStateBackend

  constructor(context: OperatorContext, output: Output<unknown>, backend: KeyedStateBackend) {
    super(context, output)
    this.#backend = backend
  }

  moveToPair(leftTimestamp: number, rightTimestamp: number): void {
    this.leftTimestamp = leftTimestamp
    this.rightTimestamp = rightTimestamp
    this.moveTo(Math.max(leftTimestamp, rightTimestamp))
  }

  get key(): unknown {
    return this.#backend.currentKey
  }
}
