// Records per second and processor time per record of whole jobs in slot threads, and the peer's for the same work right after.
// Records are not frozen, as in production.

import type { Figure } from './figure.ts'
import { inChild } from './measure/child-process.ts'
import type { CheckRequest, CheckResult } from './measure/check-child.ts'
import type { MeasureOptions } from './measure/options.ts'
import { emitCompared, inBothModes, peerOrWord } from './measure/peer.ts'
import type { PeerMode } from './measure/peer.ts'
import type { ThroughputRequest, ThroughputResult } from './measure/throughput-child.ts'

interface Case {
  readonly name: string
  readonly job: 'nexmark' | 'keyed'
  readonly args: Readonly<Record<string, unknown>>
  /** The same work there. */
  readonly peer: Readonly<Record<string, string | number>>
}

const cases: readonly Case[] = [
  nexmark('pass-through', 'q0'),
  nexmark('shuffle', 'q0k'),
  keyed('keyed update of 10,000 keys', 10_000, 'object'),
  keyed('keyed update of 1,000,000 keys', 1_000_000, 'object'),
  keyed('keyed update of 10,000 keys, bytes', 10_000, 'bytes'),
  keyed('keyed update of 1,000,000 keys, bytes', 1_000_000, 'bytes'),
  nexmark('tumbling window', 'q7'),
]

/** What the peer's `kind=check` prints for so many events. */
const checkedEvents = 100_000
const checksums: Readonly<Record<string, number>> = { q0: 3608809316, q0k: 775745747, q7: 1651296793 }

const endMs = 30_000

export async function run(emit: (figure: Figure) => void, options: MeasureOptions): Promise<void> {
  const peer = peerOrWord(options.peers)
  const chosen = cases.filter(({ name }) => name.includes(options.only))
  for (const { job, args } of chosen) if (job === 'nexmark') await check(String(args['query']))
  for (const one of chosen) {
    for (const parallelism of [1, 2]) {
      const ours = await measure(one, parallelism, options)
      const place = `${one.name}, parallelism ${parallelism}`
      const { warmSeconds: warm, measureSeconds: meas } = options
      emitBoth(emit, place, ours, await inBothModes(peer, { ...one.peer, p: parallelism, warm, meas }))
    }
  }
}

function nexmark(name: string, query: string): Case {
  return { name, job: 'nexmark', args: { query }, peer: { kind: 'nexmark', q: query } }
}

function keyed(name: string, keys: number, value: 'object' | 'bytes'): Case {
  return { name, job: 'keyed', args: { keys, value }, peer: { kind: 'keyed', keys, fullckpt: 'false' } }
}

/** Before anything is compared: the job does the peer's work. */
async function check(query: string): Promise<void> {
  const request: CheckRequest = { query, end: checkedEvents, parallelism: 2 }
  const { checksum } = await inChild<CheckResult>('check-child.ts', request, endMs * 2)
  if (checksum !== checksums[query])
    throw new Error(`${query} of ${checkedEvents} events gives ${checksum}, the peer's is ${checksums[query]}.`)
}

function measure({ job, args }: Case, parallelism: number, options: MeasureOptions): Promise<ThroughputResult> {
  const { warmSeconds, measureSeconds } = options
  const request: ThroughputRequest = { job, args, parallelism, warmSeconds, measureSeconds }
  const deadlineMs = (warmSeconds + measureSeconds) * 1000 + endMs * 4
  return inChild<ThroughputResult>('throughput-child.ts', request, deadlineMs)
}

function emitBoth(
  emit: (figure: Figure) => void,
  place: string,
  ours: ThroughputResult,
  modes: readonly PeerMode[],
): void {
  const figure = (metric: string, unit: string, value: number): Figure => ({
    bench: 'throughput',
    case: place,
    metric,
    value,
    unit,
  })
  const throughput = figure('throughput', 'records/s', ours.recordsPerSecond)
  emitCompared(emit, throughput, { modes, theirs: ({ events_s }) => events_s, better: 'higher' })
  const cpu = figure('cpu', 'µs/record', ours.cpuMicrosecondsPerRecord)
  emitCompared(emit, cpu, { modes, theirs: ({ events_s_core }) => 1e6 / events_s_core, better: 'lower' })
}
