// Prints records; at least once.

import type { Sink, SinkContext } from './contract.ts'

export interface PrintSinkOptions<T> {
  /** Default: JSON. */
  readonly format?: (value: T, timestamp: number) => string
  /** Where lines go; default: the environment's log. */
  readonly writeLine?: (line: string) => void
}

export function printSink<T>(options: PrintSinkOptions<T> = {}): Sink<T> {
  const format = options.format ?? asJson
  return {
    name: 'print',
    createWriter(context: SinkContext) {
      const { environment, task } = context
      const log = (line: string): void =>
        environment.log('info', line, { vertex: task.vertexName, subtask: task.subtask })
      const writeLine = options.writeLine ?? log
      return {
        open: () => Promise.resolve(),
        write: (value, timestamp) => writeLine(format(value, timestamp)),
        prepareCommit: () => Promise.resolve([]),
        close: () => undefined,
      }
    },
  }
}

function asJson(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) ?? String(value)
  )
}
