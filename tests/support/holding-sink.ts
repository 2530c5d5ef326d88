// A sink that gives nothing out before its input ends: until then all that it was given lies in its operator state, of any redistribution.

import { z } from 'zod'
import type { Redistribution } from '../../runtime/checkpoint/contract.ts'
import type { Sink, SinkContext, SinkWriter } from '../../runtime/connectors/contract.ts'
import { jsonCodec } from '../../runtime/connectors/json-codec.ts'
import { createReader, createWriter } from '../../runtime/record/bytes.ts'

/** What is outside, by transaction: committing one again changes nothing. */
export type Committed = Map<string, readonly string[]>

export interface HoldingSinkOptions {
  readonly redistribution: Redistribution
  readonly committed: Committed
  /** Each restored list, as a subtask got it. */
  readonly onRestored?: (items: readonly string[]) => void
}

const codec = jsonCodec('held text', 1, z.string())

/**
 * split: a subtask holds what it was dealt. union: all get all, and each takes every so manieth of it, in an order that must be the same for
 * all. broadcast: all hold the same, which the first one gives out; a record replaces it.
 */
export function holdingSink(options: HoldingSinkOptions): Sink<string> {
  return {
    name: `holding sink, ${options.redistribution}`,
    createWriter: (context) => writerOf(context, options),
    createCommitter: () => ({
      commit: async (committables) => {
        for (const { transaction, payload } of committables)
          options.committed.set(transaction, payload as readonly string[])
      },
      list: () => Promise.resolve([]),
      abort: () => Promise.resolve(),
    }),
  }
}

function writerOf(context: SinkContext, { redistribution, onRestored }: HoldingSinkOptions): SinkWriter<string> {
  const { task, uid } = context
  const restored = context.restored.items.map(({ bytes, codec: stored }) => {
    const answer = codec.readerOf(stored)
    if ('refused' in answer) throw new Error(answer.refused)
    return answer.codec.decode(createReader(bytes))
  })
  onRestored?.(restored)
  let held =
    redistribution === 'union' ? restored.filter((_, index) => index % task.parallelism === task.subtask) : restored
  const given = (): readonly string[] => (redistribution === 'broadcast' && task.subtask > 0 ? [] : held)
  return {
    open: () => Promise.resolve(),
    write: (value) => void (held = redistribution === 'broadcast' ? [value] : [...held, value]),
    prepareCommit: async (_checkpoint, endOfInput) => {
      const payload = given()
      if (!endOfInput || payload.length === 0) return []
      held = []
      return [{ transaction: `${task.job} ${uid} ${task.subtask}`, payload }]
    },
    snapshot: () => ({ redistribution, codec: codec.description, items: held.map(bytesOf) }),
    close: () => undefined,
  }
}

function bytesOf(value: string): Uint8Array {
  const writer = createWriter()
  codec.encode(value, writer)
  return writer.take()
}
