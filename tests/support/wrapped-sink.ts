// Sinks of which something is to be seen, or to go wrong, at a barrier.

import type { Sink, SinkWriter } from '../../runtime/connectors/contract.ts'

/** The sink with another prepareCommit, which is given the writer whose place it takes. Of a writer without state. */
export function withPrepareCommit<T>(
  sink: Sink<T>,
  prepareCommit: (
    writer: SinkWriter<T>,
    ...barrier: Parameters<SinkWriter<T>['prepareCommit']>
  ) => ReturnType<SinkWriter<T>['prepareCommit']>,
): Sink<T> {
  return {
    ...sink,
    createWriter: (context) => {
      const writer = sink.createWriter(context)
      return {
        open: () => writer.open(),
        write: (value, timestamp) => writer.write(value, timestamp),
        prepareCommit: (...barrier) => prepareCommit(writer, ...barrier),
        close: () => writer.close(),
      }
    },
  }
}
