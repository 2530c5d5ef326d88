// The peer's keyed update: a value of 100 bytes for each key, in which each record of the key counts up one number.
// First all keys in turn, then keys drawn at random. The peer's value is a byte array; here it is the same array, or an object
// of a number and a text, as a job in TypeScript would have it.

import { defineJob, noWatermarks, valueState, z } from 'millrace'
import type { KeyedProcessFunction, ValueState } from 'millrace'
import type { TypedDescriptor } from '../../runtime/state/contract.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'
import { Board, board, monotonicMs } from './board.ts'
import { countSink } from './count-sink.ts'
import { generatedSource } from './generated-source.ts'
import { watchLoop } from './loop-watch.ts'
import { mark, markLoaded, tellMainTimeline } from './timeline.ts'

markLoaded()

const args = z.object({ keys: z.int(), value: z.enum(['object', 'bytes']), beacon: z.string().optional() })

export default defineJob({ name: 'keyed', args }, (env, { keys, value, beacon }) => {
  if (beacon !== undefined) tellMainTimeline(beacon)
  env.config.freezeRecords = false
  env.config.checkpointIntervalMs = undefined
  env.config.restartStrategy = { type: 'fixed-delay', attempts: 1_000_000, delayMs: 0 }
  const source = generatedSource<number>({
    name: 'keys',
    output: typeInfoOf('key', z.int()),
    createBlocks: () => (first, stride, count) => {
      const block: number[] = []
      for (let n = first; block.length < count; n += stride) block.push(keyOf(n, keys))
      return block
    },
    timestampOf: (n) => n,
    end: undefined,
  })
  const keyed = env.source(source, { uid: 'source', watermarks: noWatermarks() }).keyBy((key) => key)
  const schema = z.int()
  const updated =
    value === 'bytes' ? keyed.process(update(bytesValue), { schema }) : keyed.process(update(objectValue), { schema })
  updated.uid('update').sinkTo(countSink({ beacon })).uid('sink')
})

/** Number n is key n while all keys are being filled, and a random one afterwards. */
function keyOf(n: number, keys: number): number {
  return n < keys ? n : mixed(n) % keys
}

/** Neighbouring numbers to numbers without order (fmix32; the peer mixes 64 bits, which JavaScript would need BigInt for). */
function mixed(n: number): number {
  let hash = n ^ (n >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** How a value of 100 bytes is made and counted up. */
interface ValueForm<Value> {
  readonly state: TypedDescriptor<ValueState<Value>>
  readonly first: (key: number) => Value
  /** Gives the number that it has now. */
  readonly countUp: (value: Value) => number
}

const valueBytes = 100

const objectValue: ValueForm<{ count: number; payload: string }> = {
  state: valueState('counted', z.object({ count: z.int(), payload: z.string() })),
  first: (key) => ({ count: 0, payload: Buffer.from(bytesValue.first(key).subarray(8)).toString('hex', 0, 46) }),
  countUp: (value) => ++value.count,
}

/** A number of eight bytes, the highest first, and others. */
const bytesValue: ValueForm<Uint8Array> = {
  state: valueState('counted', z.instanceof(Uint8Array)),
  first: (key) => {
    const value = new Uint8Array(valueBytes)
    for (let at = 8; at < valueBytes; at++) value[at] = mixed(key + at)
    return value
  },
  countUp: (value) => {
    for (let at = 7; at >= 0; at--) {
      const next = (value[at]! + 1) & 255
      value[at] = next
      if (next !== 0) break
    }
    let count = 0
    for (let at = 0; at < 8; at++) count = count * 256 + value[at]!
    return count
  },
}

function update<Value>(
  form: ValueForm<Value>,
): KeyedProcessFunction<number, number, { counted: TypedDescriptor<ValueState<Value>> }, number> {
  const shared = board()
  const { numbers } = shared
  const thrown = Board.control('throw')
  let operators = 0
  let first = 0
  let count = 0
  let begun = false
  let latest = 0
  const countUp = (value: Value): void => {
    latest = form.countUp(value)
  }
  return {
    state: { counted: form.state },
    open({ task }) {
      mark('restored')
      operators = Board.lane('operator', task.subtask)
      first = Board.lane('first', task.subtask)
      count = numbers[operators]!
      watchLoop(shared, task.subtask)
    },
    process(key, { state: { counted }, emit }) {
      if (!begun) {
        begun = true
        mark('record')
        numbers[first] = monotonicMs()
      }
      if (counted.get() === undefined) counted.update(form.first(key))
      counted.mutate(countUp)
      numbers[operators] = ++count
      if (numbers[thrown] !== 0) throwOnce(shared)
      emit(latest)
    },
  }
}

function throwOnce(shared: Board): void {
  shared.set('throw', 0)
  shared.clear('first')
  shared.set('threwAtMs', monotonicMs())
  throw new Error('thrown to measure the recovery')
}
