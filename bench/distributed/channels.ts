// What a record of about 150 B costs from one slot to another: over NATS, the server's processor time included, against threads
// of one process. Then the same with other sizes of frames and windows, from which runtime/network/limits.ts has its values.

import { startNats } from '../../tests/servers/support/nats-server.ts'
import type { Figure } from '../figure.ts'
import { inChild } from '../measure/child-process.ts'
import type { ChannelsRequest, ChannelsResult } from './channels-child.ts'
import type { Limits } from './channels-limits.ts'

const kib = 1024
const warmMs = 2000
const measureMs = 4000
/** Of each case the cheapest round counts: the machine has other work. */
const rounds = 3
const childDeadlineMs = 60_000
const frames = [8, 16, 32, 64].map((size) => size * kib)
const windows = [64, 128, 256, 384, 512, 1024].map((size) => size * kib)

export async function run(emit: (figure: Figure) => void): Promise<void> {
  const server = await startNats()
  try {
    const nats = { url: server.url, pid: server.process.pid! }
    const [overThreads, overNats] = await alternate([{ nats: undefined }, { nats }])
    const figure = (what: string, result: ChannelsResult): Figure => ({
      bench: 'nats',
      case: what,
      metric: 'processor time of a record, server included',
      value: round(cost(result)),
      unit: 'µs',
    })
    emit(figure('threads', overThreads!))
    emit({
      ...figure('NATS', overNats!),
      peer: 'threads',
      peerValue: round(cost(overThreads!)),
      ratio: round(cost(overThreads!) / cost(overNats!)),
    })
    const serverShare = round(overNats!.server / cost(overNats!))
    emit({ bench: 'nats', case: 'NATS', metric: "the server's share of it", value: serverShare, unit: 'of 1' })
    const times = round(cost(overNats!) / cost(overThreads!))
    emit({ bench: 'nats', case: 'NATS', metric: 'times the processor time of threads', value: times, unit: 'times' })
    const sizes: { readonly what: string; readonly limits: Limits }[] = [
      ...frames.map((bytes) => ({ what: `frames of ${bytes / kib} KiB`, limits: { FRAME_BYTES_MAX: bytes } })),
      ...windows.map((bytes) => ({ what: `a window of ${bytes / kib} KiB`, limits: { WINDOW_BYTES_MAX: bytes } })),
    ]
    const results = await alternate(sizes.map(({ limits }) => ({ nats, limits })))
    for (const [index, result] of results.entries()) {
      const what = `NATS, ${sizes[index]!.what}`
      emit(figure(what, result))
      const perSecond = Math.round(result.recordsPerSecond)
      emit({ bench: 'nats', case: what, metric: 'throughput', value: perSecond, unit: 'records/s' })
    }
  } finally {
    await server.stop()
  }
}

/** Round by round, so that other work of the machine meets all cases alike. */
async function alternate(cases: readonly Partial<ChannelsRequest>[]): Promise<ChannelsResult[]> {
  const best: ChannelsResult[] = []
  for (let turn = 0; turn < rounds; turn++) {
    for (const [index, one] of cases.entries()) {
      const request = { nats: undefined, limits: {}, warmMs, measureMs, ...one }
      const result = await inChild<ChannelsResult>('../distributed/channels-child.ts', request, childDeadlineMs)
      const known = best[index]
      if (known === undefined || cost(result) < cost(known)) best[index] = result
    }
  }
  return best
}

function cost(result: ChannelsResult): number {
  return result.both + result.server
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
