// Shared by the conformance suites: a task's identity, and the comparison of what came with what should have come.

import { incarnation, jobId, subtaskIndex, vertexId } from '../base/ids.ts'
import type { TaskInfo } from '../operators/contract.ts'

export const conformanceJob = jobId('conformance')

export function taskOf(options: {
  readonly subtask: number
  readonly parallelism: number
  readonly attempt: number
}): TaskInfo {
  return {
    job: conformanceJob,
    vertex: vertexId('vertex'),
    vertexName: 'vertex',
    subtask: subtaskIndex(options.subtask),
    parallelism: options.parallelism,
    maxParallelism: 128,
    attempt: { incarnation: incarnation(1), number: options.attempt },
  }
}

/** Throws unless both hold the same values equally often, in whatever order. */
export function demandSame(actual: readonly string[], expected: readonly string[], when: string): void {
  const difference = new Map<string, number>()
  for (const value of expected) difference.set(value, (difference.get(value) ?? 0) - 1)
  for (const value of actual) difference.set(value, (difference.get(value) ?? 0) + 1)
  const wrong = [...difference].filter(([, times]) => times !== 0)
  if (wrong.length === 0) return
  const listed = wrong
    .slice(0, 5)
    .map(([value, times]) => `${times > 0 ? `${times} too many of` : `${-times} missing of`} ${value}`)
  throw new Error(`${when}: ${wrong.length} records are wrong: ${listed.join(', ')}`)
}

export function demand(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}

/** Up to `count` whole numbers, evenly spread over [0, last], both ends included. */
export function spread(last: number, count: number): number[] {
  if (last < count) return Array.from({ length: last + 1 }, (_, index) => index)
  return Array.from({ length: count }, (_, index) => Math.round((index * last) / (count - 1)))
}
