// One case of channels.ts in a process of its own: two threads with a channel between them, and the processor time of a record.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { MessageChannel, Worker } from 'node:worker_threads'
import { serveChild } from '../measure/child-process.ts'
import type { Limits } from './channels-limits.ts'
import type { EndRequest } from './channels-thread.ts'

export interface ChannelsRequest {
  /** undefined: MessagePorts between the threads. */
  readonly nats: { readonly url: string; readonly pid: number } | undefined
  readonly limits: Limits
  readonly warmMs: number
  readonly measureMs: number
}

/** Processor time in microseconds for each record. */
export interface ChannelsResult {
  readonly both: number
  readonly server: number
  readonly recordsPerSecond: number
}

/** Linux counts in hundredths of a second. */
const tickMicros = 10_000

serveChild(async ({ nats, limits, warmMs, measureMs }: ChannelsRequest): Promise<ChannelsResult> => {
  const counted = new BigInt64Array(new SharedArrayBuffer(8))
  const { port1, port2 } = new MessageChannel()
  const failed = Promise.withResolvers<never>()
  const start = (side: EndRequest['side'], port: MessageChannel['port1']): Worker => {
    const transport: EndRequest['transport'] = nats === undefined ? { port } : { url: nats.url }
    const workerData: EndRequest = { side, transport, limits, counted }
    const transferList = nats === undefined ? [port] : []
    const worker = new Worker(new URL('channels-thread.ts', import.meta.url), { workerData, transferList })
    worker.on('error', (error) => failed.reject(error))
    return worker
  }
  const workers = [start('producer', port1), start('consumer', port2)]
  const now = () => ({
    micros: process.cpuUsage().user + process.cpuUsage().system,
    server: nats === undefined ? 0 : processorTicks(nats.pid) * tickMicros,
    records: Number(Atomics.load(counted, 0)),
    atMs: performance.now(),
  })
  const measure = async (): Promise<ChannelsResult> => {
    while (Atomics.load(counted, 0) === 0n) await sleep(10)
    await sleep(warmMs)
    const before = now()
    await sleep(measureMs)
    const after = now()
    const records = after.records - before.records
    return {
      both: (after.micros - before.micros) / records,
      server: (after.server - before.server) / records,
      recordsPerSecond: (records / (after.atMs - before.atMs)) * 1000,
    }
  }
  const result = await Promise.race([measure(), failed.promise])
  await Promise.all(workers.map((worker) => worker.terminate()))
  return result
})

/** User and system time of a process; the fields stand behind its name, which may hold anything. */
function processorTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return Number(fields[11]) + Number(fields[12])
}
