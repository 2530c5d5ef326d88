// The contents of windows over two streams: the records of each side, and what a join or a coGroup makes of them.

import type { Key, TypeInfo } from '../record/contract.ts'
import type { DeepReadonly } from '../state/contract.ts'
import type { TimeWindow } from './window-assigner.ts'
import type { WindowContents, WindowContext } from './window-contents.ts'

/** What the function of a join or coGroup sees besides its records. Valid during the call only. */
export interface JoinContext<K> extends WindowContext {
  readonly key: K
  readonly window: TimeWindow
}

/** One record for each pair of a window. */
export type JoinFunction<K, Left, Right, Out> = (
  left: DeepReadonly<Left>,
  right: DeepReadonly<Right>,
  context: JoinContext<K>,
) => Out

/** All of a window at once; one of the sides may be empty. */
export type CoGroupFunction<K, Left, Right, Out> = (
  lefts: readonly DeepReadonly<Left>[],
  rights: readonly DeepReadonly<Right>[],
  context: JoinContext<K>,
) => Iterable<Out>

export interface Sides {
  readonly left: unknown[]
  readonly right: unknown[]
}

export type CoGroupResults = (sides: Sides, context: JoinContext<Key>) => Iterable<unknown>

/** Its operator says before each record of which side it is. */
export class CoGroupContents implements WindowContents {
  readonly type: TypeInfo<unknown>
  side: keyof Sides = 'left'
  readonly #results: CoGroupResults

  /** `type` is that of Sides. */
  constructor(type: TypeInfo<unknown>, results: CoGroupResults) {
    this.type = type
    this.#results = results
  }

  first(value: unknown): Sides {
    return this.add({ left: [], right: [] }, value)
  }

  add(accumulator: unknown, value: unknown): Sides {
    const sides = accumulator as Sides
    sides[this.side].push(value)
    return sides
  }

  merge(earlier: unknown, later: unknown): Sides {
    const sides = earlier as Sides
    const { left, right } = later as Sides
    for (const value of left) sides.left.push(value)
    for (const value of right) sides.right.push(value)
    return sides
  }

  results(key: Key, window: TimeWindow, accumulator: unknown, context: WindowContext): Iterable<unknown> {
    return this.#results(accumulator as Sides, new RunningJoinContext(key, window, context))
  }
}

export function joinResults(join: JoinFunction<Key, unknown, unknown, unknown>): CoGroupResults {
  // A pair at a time: all of them may be far more than the records.
  return function* pairs({ left, right }, context) {
    for (const one of left) for (const other of right) yield join(one, other, context)
  }
}

export function coGroupResults(coGroup: CoGroupFunction<Key, unknown, unknown, unknown>): CoGroupResults {
  // Copies: the function may emit a list as it is, and a late record would change it afterwards.
  return ({ left, right }, context) => coGroup([...left], [...right], context)
}

class RunningJoinContext implements JoinContext<Key> {
  readonly key: Key
  readonly window: TimeWindow
  readonly emitTo: WindowContext['emitTo']
  readonly #context: WindowContext

  constructor(key: Key, window: TimeWindow, context: WindowContext) {
    this.key = key
    this.window = window
    this.emitTo = context.emitTo
    this.#context = context
  }

  get currentWatermark(): number {
    return this.#context.currentWatermark
  }

  get processingTimeMs(): number {
    return this.#context.processingTimeMs
  }
}
