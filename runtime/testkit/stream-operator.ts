// Any operator as a job makes it (windows, joins, asynchronous functions …), for a harness.

import { invariant } from '../base/errors.ts'
import { fromCollection } from '../connectors/memory-source.ts'
import { printSink } from '../connectors/print.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { defineJob } from '../job/define-job.ts'
import type { OperatorStream, Stream } from '../job/stream.ts'
import type { HarnessOptions } from '../operators/harness.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import { testkitError } from './errors.ts'

/** Begins the uids of the sinks that a job needs. */
const sinks = 'printed-'

export interface OperatorOfOptions<First, Second> {
  /** Of the records that go in; without it they describe themselves. What is kept of them in state depends on it. */
  readonly schema?: StreamSchema<First>
  readonly secondSchema?: StreamSchema<Second>
}

/**
 * What `openHarness` needs of the operator that `define` puts behind one stream or two: `operatorOf<Order>((orders) => orders.keyBy(…).window(…).reduce(…))`.
 * Throws what the job would, and MR-K04 unless it is exactly one operator.
 */
export function operatorOf<First, Second = never>(
  define: (first: Stream<First>, second: Stream<Second>) => OperatorStream<unknown>,
  { schema, secondSchema }: OperatorOfOptions<First, Second> = {},
): Pick<HarnessOptions, 'operator' | 'keySelector' | 'secondKeySelector'> {
  const job = defineJob((env) => {
    const stream = <T>(uid: string, type: TypeInfo<T>): Stream<T> =>
      env.source({ ...fromCollection<T>([]), output: type }, { uid })
    const first = stream('first', typeOfSchema('first', schema))
    const second = stream('second', typeOfSchema('second', secondSchema))
    const streams = [define(first, second).uid('tested'), first, second]
    // A job must do something with each source, whether or not the operator reads it.
    for (const [index, output] of streams.entries()) output.sinkTo<unknown>(printSink()).uid(`${sinks}${index}`)
  })
  const graph = buildGraph(job, { name: 'tested' })
  const vertex = vertexOfOnly(graph)
  const { factory } = vertex.chain.find(({ uid }) => uid === 'tested')!
  invariant(factory.kind === 'operator', 'a stream that takes a uid is that of an operator')
  const [keySelector, secondKeySelector] = vertex.chain[0]!.uid === 'tested' ? vertex.keySelectors : []
  return {
    operator: () => factory.create(),
    ...(keySelector !== undefined && { keySelector }),
    ...(secondKeySelector !== undefined && { secondKeySelector }),
  }
}

function vertexOfOnly({ vertices }: JobGraph): JobGraph['vertices'][number] {
  const operators = vertices
    .flatMap(({ chain }) => chain)
    .filter(({ factory, uid }) => factory.kind === 'operator' && !uid.startsWith(sinks))
  if (operators.length !== 1) {
    const names = operators.map(({ name }) => name).join(', ')
    throw testkitError('MR-K04', `There are ${operators.length}: ${names}.`)
  }
  return vertices.find(({ chain }) => chain.some(({ uid }) => uid === 'tested'))!
}
