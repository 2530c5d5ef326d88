// What a channel costs per record of about 150 B: inside a thread (by reference), and by frames over MessagePorts, both ends in
// this one thread, so that the figure is the work of both sides. The peers do the same with nothing of a channel around it: an
// array handed over, and the codec alone on batches of about a frame.

import { MessageChannel } from 'node:worker_threads'
import { edgeId, incarnation, jobId, slotId, subtaskIndex, vertexId } from '../runtime/base/ids.ts'
import type { SlotId } from '../runtime/base/ids.ts'
import { realEnvironment } from '../runtime/local/platform/real-environment.ts'
import { ThreadTransport } from '../runtime/local/platform/thread-transport.ts'
import { ChannelHub } from '../runtime/network/channel-hub.ts'
import type { InputChannel, OutputChannel } from '../runtime/network/contract.ts'
import { memoryChannel } from '../runtime/network/memory-channel.ts'
import { creditAddress, dataAddress } from '../runtime/network/subjects.ts'
import { createReader, createWriter } from '../runtime/record/bytes.ts'
import type { TypeInfo } from '../runtime/record/contract.ts'
import { typeInfoOf } from '../runtime/record/type-info.ts'
import { bid } from './bid.ts'
import type { Figure } from './figure.ts'

const RECORDS = 1_000_000
/** Of each figure the best of so many rounds counts: the machine has other work. */
const ROUNDS = 3
const CODEC_BATCH = 170

const environment = realEnvironment({ log: () => undefined })
const job = jobId('bench')
const [left, right] = [slotId('0#0'), slotId('1#0')]
const channel = { edge: edgeId(0), producer: subtaskIndex(0), consumer: subtaskIndex(0) }
const attempt = { incarnation: incarnation(1), number: 1 }
const producer = { task: { vertex: vertexId('producer'), subtask: subtaskIndex(0) }, attempt }
const consumer = { task: { vertex: vertexId('consumer'), subtask: subtaskIndex(0) }, attempt }

export async function run(emit: (figure: Figure) => void): Promise<void> {
  const type = typeInfoOf('bid', bid) as TypeInfo<unknown>
  const records = makeRecords()
  const array = await best(() => handOver(records))
  const memory = await best(() => pump(memoryChannel(channel, environment.executor), records))
  emit({ ...figure('memory', memory), peer: 'batches in an array', peerValue: array, ratio: memory / array })
  const codec = await best(() => encodeAndDecode(type, records))
  const frames = await best(() => pumpFrames(type, records))
  emit({
    ...figure('thread, both ends in one', frames),
    peer: 'the codec alone',
    peerValue: codec,
    ratio: frames / codec,
  })
}

function figure(name: string, recordsPerSecond: number): Figure {
  return { bench: 'channels', case: name, metric: 'throughput', value: recordsPerSecond, unit: 'records/s' }
}

/** Records per second. */
async function best(round: () => Promise<void> | void): Promise<number> {
  let ms = Number.POSITIVE_INFINITY
  for (let index = 0; index < ROUNDS; index++) {
    const from = performance.now()
    await round()
    ms = Math.min(ms, performance.now() - from)
  }
  return Math.round((RECORDS / ms) * 1000)
}

/** A task at each end: the producer stops when its output is not ready, the consumer when nothing is available. */
function pump(
  { output, input }: { output: OutputChannel; input: InputChannel },
  records: readonly unknown[],
): Promise<void> {
  return new Promise((resolve) => {
    let emitted = 0
    let taken = 0
    const produce = (): void => {
      while (output.ready && emitted < RECORDS) output.emit(records[emitted % records.length], emitted++)
      if (emitted === RECORDS) output.flush()
    }
    const consume = (): void => {
      for (let item = input.next(); item !== undefined; item = input.next()) {
        if (item.kind === 'records') for (const value of item.values) if (value !== undefined) taken++
      }
      if (taken === RECORDS) resolve()
    }
    output.onChange(produce)
    input.onAvailable(consume)
    input.open()
    produce()
  })
}

async function pumpFrames(type: TypeInfo<unknown>, records: readonly unknown[]): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  const hubOf = (slot: SlotId, transport: ThreadTransport) =>
    new ChannelHub({ job, slot, transport, environment, deadlineMs: 60_000 })
  const transports = [new ThreadTransport(left), new ThreadTransport(right)] as const
  transports[0].addPeer(right, port1)
  transports[1].addPeer(left, port2)
  const hubs = [hubOf(left, transports[0]), hubOf(right, transports[1])] as const
  const fail = (error: unknown): never => {
    throw error
  }
  const output = hubs[0].output({ channel, attempt, address: dataAddress(job, right, consumer) }, type, {
    ...producer,
    fail,
  })
  const input = hubs[1].input({ channel, attempt, address: creditAddress(job, left, producer) }, type, {
    ...consumer,
    fail,
  })
  await pump({ output, input }, records)
  for (const hub of hubs) hub.closeAll()
  for (const transport of transports) transport.close()
}

function handOver(records: readonly unknown[]): void {
  let taken = 0
  for (let from = 0; from < RECORDS; from += 128) {
    const values: unknown[] = []
    const timestamps: number[] = []
    for (let index = from; index < Math.min(RECORDS, from + 128); index++) {
      values.push(records[index % records.length])
      timestamps.push(index)
    }
    for (const value of values) if (value !== undefined) taken++
  }
  if (taken !== RECORDS) throw new Error(`took ${taken} records`)
}

function encodeAndDecode(type: TypeInfo<unknown>, records: readonly unknown[]): void {
  const writer = createWriter(32 * 1024)
  const timestamps = records.map((_, index) => index)
  let taken = 0
  for (let done = 0; done < RECORDS; done += CODEC_BATCH) {
    const from = done % (records.length - CODEC_BATCH)
    writer.reset()
    type.batch.encodeBatch(records, timestamps, from, from + CODEC_BATCH, writer)
    taken += type.batch.decodeBatch(createReader(writer.bytes, 0, writer.position)).values.length
  }
  if (taken < RECORDS) throw new Error(`took ${taken} records`)
}

export function makeRecords(): readonly unknown[] {
  return Array.from({ length: 4000 }, (_, index) => ({
    auction: 1000 + (index % 700),
    bidder: 2000 + (index % 900),
    price: 100 + ((index * 37) % 5000),
    dateTime: 1_700_000_000_000 + index * 10,
    channel: `channel-${index % 50}`,
    url: `https://auction.example/item.htm?query=1&channel_id=${index * 7919}`,
    extra: 'e'.repeat(20 + (index % 40)),
  }))
}
