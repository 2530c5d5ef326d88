// The operators of one subtask, joined by direct calls; the last of each branch writes to edges.

import type { MetricGroup } from '../base/metrics.ts'
import type { ChainedOperator, JobVertex } from '../job/contract.ts'
import type { Output, OperatorContext, StreamOperator } from '../operators/contract.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import type { StreamEvent } from '../record/element.ts'
import type { EdgeId } from '../base/ids.ts'
import { invariant } from '../base/errors.ts'

/** One edge's writer, as the chain uses it (network/record-writer.ts). */
export interface EdgeWriter {
  emit(value: unknown, timestamp: number): void
  event(event: StreamEvent): void
  flush(): void
  readonly ready: boolean
}

export interface ChainOptions {
  readonly vertex: JobVertex
  readonly writers: ReadonlyMap<EdgeId, EdgeWriter>
  /** Applied to every emitted record; undefined: records are not frozen. */
  readonly freeze: ((value: unknown) => unknown) | undefined
  readonly metrics: MetricGroup
  /** The vertex was wholly finished in the restore point: its operators are not made, only the end of data passes (rule 19). */
  readonly finishedBefore: boolean
}

interface Link {
  readonly spec: ChainedOperator
  /** undefined: the source at the chain's head, driven by the task, or a vertex finished before. */
  readonly operator: StreamOperator | undefined
  readonly output: Output<unknown>
  /** Chained consumers, main and side outputs, each once. */
  readonly next: readonly number[]
  readonly edges: readonly EdgeWriter[]
  watermark: number
}

export class OperatorChain {
  readonly #links: Link[]
  readonly #writers: readonly EdgeWriter[]
  /** Those that may have records in flight. */
  readonly #async: readonly StreamOperator[]
  /** Those that may hold their producers back. */
  readonly #holding: readonly StreamOperator[]
  #recordsOut = 0
  #finishing = 0
  #finishCalled = false

  constructor(options: ChainOptions) {
    const { vertex } = options
    this.#links = Array.from({ length: vertex.chain.length })
    this.#writers = [...options.writers.values()]
    // Backwards: chained consumers have larger indices, so each output finds its consumers made.
    for (let index = vertex.chain.length - 1; index >= 0; index--) {
      const spec = vertex.chain[index]!
      const runs = spec.factory.kind === 'operator' && !options.finishedBefore
      const operator = runs ? spec.factory.create() : undefined
      const output = options.finishedBefore ? nowhere : this.#outputOf(spec, options)
      const next = [...new Set(spec.outputs.flatMap((target) => (target.to === 'chained' ? [target.operator] : [])))]
      const edges = [
        ...new Set(
          spec.outputs.flatMap((target) => (target.to === 'edge' ? [this.#writer(options, target.edge)] : [])),
        ),
      ]
      this.#links[index] = { spec, operator, output, next, edges, watermark: MIN_WATERMARK }
    }
    const operators = [...this.operators()].map(({ operator }) => operator)
    this.#async = operators.filter((operator) => operator.holdsWatermarks)
    this.#holding = operators.filter((operator) => 'ready' in operator)
  }

  /** The first operator; undefined when the chain begins with a source. */
  get head(): StreamOperator | undefined {
    return this.#links[0]!.operator
  }

  /** Where the source at the head emits to. */
  get headOutput(): Output<unknown> {
    return this.#links[0]!.output
  }

  get recordsOut(): number {
    return this.#recordsOut
  }

  /** Whether all edges and operators have room; a task without it stops reading. */
  get ready(): boolean {
    const writers = this.#writers
    for (let index = 0; index < writers.length; index++) if (!writers[index]!.ready) return false
    const operators = this.#holding
    for (let index = 0; index < operators.length; index++) if (operators[index]!.ready === false) return false
    return true
  }

  /** Records or watermarks are in flight within an operator. */
  get pending(): boolean {
    return this.#async.some((operator) => operator.pending === true)
  }

  watermarkOf(index: number): number {
    return this.#links[index]!.watermark
  }

  /** The head's event time, set before its timers fire, so that its operator sees it. */
  setHeadWatermark(watermark: number): void {
    this.#links[0]!.watermark = watermark
  }

  /** Before `open`, with the same contexts: what the restore point permits is committed before any new record (rule 22). */
  async commitRestored(contextOf: (index: number, spec: ChainedOperator) => OperatorContext): Promise<void> {
    for (const { index, spec, operator } of this.operators()) {
      if (operator.commitRestored !== undefined) await operator.commitRestored(contextOf(index, spec))
    }
  }

  /** Consumers first, so that nobody is given a record before it is open. */
  async open(contextOf: (index: number, spec: ChainedOperator) => OperatorContext): Promise<void> {
    for (let index = this.#links.length - 1; index >= 0; index--) {
      const link = this.#links[index]!
      await link.operator?.open(contextOf(index, link.spec), link.output)
    }
  }

  /** Each operator with its place and uid, from the head on. */
  *operators(): Generator<{
    readonly index: number
    readonly spec: ChainedOperator
    readonly operator: StreamOperator
  }> {
    for (const [index, link] of this.#links.entries()) {
      if (link.operator !== undefined) yield { index, spec: link.spec, operator: link.operator }
    }
  }

  /** The head's timers up to `watermark` have fired: forward it through the chain and to the edges. */
  forwardWatermark(watermark: number): void {
    this.#forward(0, watermark)
  }

  forwardStatus(idle: boolean): void {
    this.event({ kind: 'status', idle })
  }

  /** Puts an event behind everything emitted so far, on every edge. */
  event(event: StreamEvent): void {
    for (const writer of this.#writers) writer.event(event)
  }

  flush(): void {
    for (const writer of this.#writers) writer.flush()
  }

  /**
   * The inputs have ended: each operator emits what is left, from the head on. False: one has something in flight, and those behind it
   * must still get that; call again.
   */
  finish(): boolean {
    for (; this.#finishing < this.#links.length; this.#finishing++) {
      const { operator } = this.#links[this.#finishing]!
      if (!this.#finishCalled) operator?.finish?.()
      this.#finishCalled = operator?.pending === true
      if (this.#finishCalled) return false
    }
    return true
  }

  /** Event time of the operator at `index` has passed it: on to its followers. */
  forwardFrom(index: number, watermark: number): void {
    const { edges, next } = this.#links[index]!
    for (const writer of edges) writer.event({ kind: 'watermark', timestamp: watermark })
    for (const follower of next) this.#forward(follower, watermark)
  }

  async close(): Promise<void> {
    for (const { operator } of this.operators()) await operator.close?.()
  }

  #forward(index: number, watermark: number): void {
    const link = this.#links[index]!
    link.watermark = watermark
    link.operator?.onWatermark?.(watermark)
    if (link.operator?.holdsWatermarks !== true) this.forwardFrom(index, watermark)
  }

  #writer(options: ChainOptions, edge: EdgeId): EdgeWriter {
    const writer = options.writers.get(edge)
    invariant(writer !== undefined, `no writer for edge ${edge} of ${options.vertex.id}`)
    return writer
  }

  #outputOf(spec: ChainedOperator, options: ChainOptions): Output<unknown> {
    const main = spec.outputs.filter((target) => target.tag === undefined)
    const tags = new Map<string, Emit>()
    for (const tag of new Set(spec.outputs.map((target) => target.tag))) {
      if (tag === undefined) continue
      tags.set(
        tag,
        this.#emitter(
          spec.outputs.filter((target) => target.tag === tag),
          options,
        ),
      )
    }
    const emit = this.#emitter(main, options)
    const { metrics } = options
    const emitTo = (tag: string, value: unknown, timestamp: number): void => {
      const emitter = tags.get(tag)
      if (emitter === undefined) metrics.add('records_dropped_total', 1)
      else emitter(value, timestamp)
    }
    return { emit, emitTo }
  }

  #emitter(targets: ChainedOperator['outputs'], options: ChainOptions): Emit {
    const emitters = targets.map((target) => this.#targetEmitter(target, options))
    const { freeze } = options
    if (emitters.length === 0) return () => {}
    const first = emitters[0]!
    if (emitters.length === 1) {
      if (freeze === undefined) return first
      return (value, timestamp) => first(freeze(value), timestamp)
    }
    return (value, timestamp) => {
      const shared = freeze === undefined ? value : freeze(value)
      for (let index = 0; index < emitters.length; index++) emitters[index]!(shared, timestamp)
    }
  }

  #targetEmitter(target: ChainedOperator['outputs'][number], options: ChainOptions): Emit {
    if (target.to === 'edge') {
      const writer = this.#writer(options, target.edge)
      return (value, timestamp) => {
        this.#recordsOut++
        writer.emit(value, timestamp)
      }
    }
    const operator = this.#links[target.operator]!.operator
    invariant(operator !== undefined, `a source cannot be chained behind ${options.vertex.id}`)
    return (value, timestamp) => operator.process(value, timestamp)
  }
}

const nowhere: Output<unknown> = { emit: () => {}, emitTo: () => {} }

type Emit = (value: unknown, timestamp: number) => void
