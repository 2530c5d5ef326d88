// What channels-thread.ts runs once the limits are as wanted.

import { edgeId, incarnation, jobId, slotId, subtaskIndex, vertexId } from '../../runtime/base/ids.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { ThreadTransport } from '../../runtime/local/platform/thread-transport.ts'
import { ChannelHub } from '../../runtime/network/channel-hub.ts'
import type { FrameTransport, InputChannel, OutputChannel } from '../../runtime/network/contract.ts'
import { connectNats } from '../../runtime/network/nats/connect.ts'
import { creditAddress, dataAddress } from '../../runtime/network/subjects.ts'
import type { TypeInfo } from '../../runtime/record/contract.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'
import { bid } from '../bid.ts'
import { makeRecords } from '../channels.ts'
import type { EndRequest } from './channels-thread.ts'

const log = (level: string, message: string): void => console.error(level, message)
const environment = realEnvironment({ log })
const job = jobId('bench')
const slots = { producer: slotId('0#0'), consumer: slotId('1#0') }
const channel = { edge: edgeId(0), producer: subtaskIndex(0), consumer: subtaskIndex(0) }
const attempt = { incarnation: incarnation(1), number: 1 }
const producer = { task: { vertex: vertexId('producer'), subtask: subtaskIndex(0) }, attempt }
const consumer = { task: { vertex: vertexId('consumer'), subtask: subtaskIndex(0) }, attempt }
/** Records between two turns of the producer, about as many as a slice of 2 ms. */
const recordsPerTurn = 2000

export async function runEnd(request: EndRequest): Promise<void> {
  const { side } = request
  const type = typeInfoOf('bid', bid) as TypeInfo<unknown>
  const hub = new ChannelHub({
    job,
    slot: slots[side],
    transport: await transportOf(request),
    environment,
    deadlineMs: 60_000,
  })
  const fail = (error: unknown): never => {
    throw error
  }
  if (side === 'producer') {
    const address = dataAddress(job, slots.consumer, consumer)
    produce(hub.output({ channel, attempt, address }, type, { ...producer, fail }))
  } else {
    const address = creditAddress(job, slots.producer, producer)
    consume(hub.input({ channel, attempt, address }, type, { ...consumer, fail }), request.counted)
  }
}

async function transportOf({ side, transport }: EndRequest): Promise<FrameTransport> {
  if ('url' in transport) {
    const readSecret = (file: string): never => {
      throw new Error(`nobody asked for ${file}`)
    }
    const link = await connectNats({ servers: [transport.url] }, { job, name: side, environment, log, readSecret })
    return link.transport
  }
  const threads = new ThreadTransport(slots[side])
  threads.addPeer(side === 'producer' ? slots.consumer : slots.producer, transport.port)
  transport.port.ref()
  return threads
}

function produce(output: OutputChannel): void {
  const records = makeRecords()
  let emitted = 0
  let posted = false
  const turn = (): void => {
    posted = false
    for (let count = 0; count < recordsPerTurn && output.ready; count++)
      output.emit(records[emitted % records.length], emitted++)
    if (output.ready) later()
  }
  const later = (): void => {
    if (posted) return
    posted = true
    environment.executor.post(turn)
  }
  output.onChange(later)
  later()
}

function consume(input: InputChannel, counted: BigInt64Array): void {
  let total = 0
  input.onAvailable(() => {
    for (let item = input.next(); item !== undefined; item = input.next())
      if (item.kind === 'records') for (const value of item.values) if (value !== undefined) total++
    Atomics.store(counted, 0, BigInt(total))
  })
  input.open()
}
