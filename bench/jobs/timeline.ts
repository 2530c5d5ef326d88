// When a job's main thread and the thread of one of its slots came to what: marks set by the job itself, so that the runtime holds none.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

type Step =
  // Of the main thread: the process is there; Node is; the command, the runtime and the job are loaded.
  | 'process'
  | 'node'
  | 'loaded'
  // Of the slot's thread: it is there; Node is; the runtime and, on the coordinator's word, the job are loaded.
  | 'thread'
  | 'threadNode'
  | 'threadLoaded'
  // Its subtask has read its state's bytes; has put them into its tables; has its first record at the operator; has given it to the sink.
  | 'read'
  | 'restored'
  | 'record'
  | 'sink'

/** Wall clock, ms. */
export type Timeline = Readonly<Partial<Record<Step, number>>>

const marks: Partial<Record<Step, number>> = {}

/** The first time counts. */
export function mark(step: Step, atMs: number = performance.timeOrigin + performance.now()): void {
  marks[step] ??= atMs
}

/** Of this thread, so far. */
export function threadTimeline(): Timeline {
  return marks
}

/** Called by the job's module when it is evaluated, which is after all that is needed to run it. */
export function markLoaded(): void {
  const { timeOrigin, nodeTiming } = performance
  mark(isMainThread ? 'process' : 'thread', timeOrigin + (isMainThread ? 0 : nodeTiming.environment))
  mark(isMainThread ? 'node' : 'threadNode', timeOrigin + nodeTiming.bootstrapComplete)
  mark(isMainThread ? 'loaded' : 'threadLoaded')
}

/** The main thread's marks lie beside the sink's beacon. */
export function tellMainTimeline(beacon: string): void {
  if (isMainThread) writeWhole(`${beacon}.main`, marks)
}

/** The file appears with all that it holds. */
export function writeWhole(file: string, content: object): void {
  writeFileSync(`${file}.new`, JSON.stringify(content))
  renameSync(`${file}.new`, file)
}

/** undefined while it is not there. */
export function readWhole(file: string): unknown {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}
