// The peer's queries: q0 hands events on, q0k deals bids out by key, q7 finds the highest bid of each ten seconds.

import { defineJob, monotonic, noWatermarks, tumblingWindows, z } from 'millrace'
import type { Stream } from 'millrace'
import { bid, bidText, eventText } from '../nexmark/events.ts'
import type { Bid, NexmarkEvent } from '../nexmark/events.ts'
import { eventTimeMs, NexmarkGenerator } from '../nexmark/generator.ts'
import { countSink } from './count-sink.ts'
import { generatedSource } from './generated-source.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'

const args = z.object({
  query: z.enum(['q0', 'q0k', 'q7']),
  /** So many events, and a checksum of what comes out; left out: endless. */
  end: z.int().optional(),
})

export default defineJob({ name: 'nexmark', args }, (env, { query, end }) => {
  env.config.freezeRecords = false
  env.config.checkpointIntervalMs = undefined
  const source = generatedSource<NexmarkEvent>({
    name: 'nexmark',
    output: typeInfoOf<NexmarkEvent>('nexmark event'),
    createBlocks: () => {
      const generator = new NexmarkGenerator()
      return (first, stride, count) => generator.block(first, stride, count)
    },
    timestampOf: eventTimeMs,
    end,
  })
  const watermarks = query === 'q7' ? monotonic<NexmarkEvent>() : noWatermarks<NexmarkEvent>()
  const events = env.source(source, { uid: 'source', watermarks })
  const sink = <T>(stream: Stream<T>, textOf: (value: T) => string): void => {
    stream.sinkTo(countSink({ textOf: end === undefined ? undefined : textOf })).uid('sink')
  }
  switch (query) {
    case 'q0':
      return sink(events, eventText)
    case 'q0k':
      return sink(
        bidsOf(events)
          .keyBy(({ auction }) => auction)
          .process<Bid>({ process: (value, { emit }) => emit(value) }, { schema: bid })
          .uid('same'),
        bidText,
      )
    case 'q7':
      return sink(
        bidsOf(events)
          .keyBy(({ auction }) => auction)
          .window(tumblingWindows({ sizeMs: 10_000 }))
          .reduce(higher)
          .uid('per-auction')
          .keyBy(() => 0)
          .window(tumblingWindows({ sizeMs: 10_000 }))
          .reduce(higher)
          .uid('over-all'),
        ({ dateTime, price }) => `${Math.floor(dateTime / 10_000)}|${price}`,
      )
    default:
      return query satisfies never
  }
})

function bidsOf(events: Stream<NexmarkEvent>): Stream<Bid> {
  return events.filter(({ type }) => type === 2).map((event) => event.bid as Bid, { schema: bid })
}

function higher<T extends { readonly price: number }>(left: T, right: T): T {
  return right.price > left.price ? right : left
}
