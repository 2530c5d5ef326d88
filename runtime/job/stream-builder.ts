// What the streams need of the environment that they belong to. An interface, so that streams and environment do not import each other.

import type { NodeSpec } from './stream-node.ts'
import type { OperatorStream } from './stream.ts'
import type { SinkHandle } from './sink-handle.ts'

/** The user's functions of an operator by the name of the call, to be refused when they are async. */
export type UserFunctions = Readonly<Record<string, unknown>>

/** The functions of these names that an object has, also by inheritance: a process function may be an instance of a class. */
export function functionsOf(owner: object, names: readonly string[]): UserFunctions {
  return Object.fromEntries(names.map((name) => [name, (owner as Readonly<Record<string, unknown>>)[name]]))
}

/** Of an AggregateFunction. */
export const aggregateFunctions: readonly string[] = ['create', 'add', 'result', 'merge']

export interface StreamBuilder {
  operator<Out>(spec: NodeSpec, functions: UserFunctions): OperatorStream<Out>
  sink(spec: NodeSpec): SinkHandle
}
