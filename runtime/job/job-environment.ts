// `env` of a job function: where streams begin and settings are made. It writes the logical graph down.

import { SPLITS_STATE } from '../connectors/contract.ts'
import type { Source, WatermarkStrategy } from '../connectors/contract.ts'
import { operatorError } from '../operators/errors.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import { jobError } from './errors.ts'
import { callerLocation } from './location.ts'
import { defaultConfig } from './settings.ts'
import type { JobConfig } from './settings.ts'
import { SinkHandle } from './sink-handle.ts'
import type { StreamBuilder, UserFunctions } from './stream-builder.ts'
import type { NodeSpec, StreamNode } from './stream-node.ts'
import { OperatorStream } from './stream.ts'

export interface SourceOptions<T> {
  readonly uid?: string
  /** Event times and watermarks; without it records keep the source's timestamps and event time comes with the end of the input. */
  readonly watermarks?: WatermarkStrategy<T>
}

/** What a job function gets. */
export interface JobEnvironment {
  readonly config: JobConfig
  /**
   * The job's id: `<name>`, and `<name>.2`, `<name>.3` … for later jobs of the same name on one machine. To name what the job writes
   * by, so that a job run again does not write among the results of the one before. Must not change the graph.
   */
  readonly job: string
  /** Splits are read by as many subtasks as the stream has parallelism. */
  source<T, Split, State>(source: Source<T, Split, State>, options?: SourceOptions<NoInfer<T>>): OperatorStream<T>
}

export class RecordingEnvironment implements JobEnvironment, StreamBuilder {
  readonly config: JobConfig = defaultConfig()
  readonly job: string
  readonly nodes: StreamNode[] = []

  constructor(job: string) {
    this.job = job
  }

  source<T, Split, State>(source: Source<T, Split, State>, options: SourceOptions<T> = {}): OperatorStream<T> {
    const untyped = source as unknown as Source<unknown, unknown, unknown>
    const watermarks = (options.watermarks ?? { createGenerator: undefined }) as WatermarkStrategy<unknown>
    const node = this.#add({
      kind: 'source',
      inputs: [],
      work: { kind: 'source', source: untyped, watermarks },
      output: untyped.output,
      stateful: true,
      states: [],
      operatorState: [SPLITS_STATE],
    })
    node.options.name = source.name
    if (options.uid !== undefined) node.options.uid = options.uid
    return new OperatorStream<T>(this, node, untyped.output)
  }

  operator<Out>(spec: NodeSpec, functions: UserFunctions): OperatorStream<Out> {
    const node = this.#add(spec)
    for (const [name, value] of Object.entries(functions)) refuseAsync(name, value, node)
    return new OperatorStream<Out>(this, node, spec.output ?? typeOfSchema<unknown>('none', undefined))
  }

  sink(spec: NodeSpec): SinkHandle {
    const node = this.#add(spec)
    if (spec.work.kind === 'sink') node.options.name = spec.work.sink.name
    return new SinkHandle(node)
  }

  #add(spec: NodeSpec): StreamNode {
    const node = { index: this.nodes.length, spec, options: { chaining: true }, location: callerLocation() }
    for (const input of spec.inputs) {
      if (this.nodes[input.node.index] !== input.node) throw jobError('MR-J12', `The ${spec.kind} at ${node.location}.`)
    }
    this.nodes.push(node)
    return node
  }
}

/** Found before the first record; a plain function that gives a promise now and then is found when it does. */
function refuseAsync(name: string, value: unknown, node: StreamNode): void {
  if (typeof value !== 'function') return
  const kind = value.constructor.name
  if (kind !== 'AsyncFunction' && kind !== 'AsyncGeneratorFunction') return
  throw operatorError('MR-J51', `The async function given as ${name} at ${node.location}.`)
}
