// A consumer slot in a thread that does nothing for as long as it is told, not even read from its socket.

import { parentPort, workerData } from 'node:worker_threads'
import { realEnvironment } from '../../../runtime/local/platform/real-environment.ts'
import type { MillraceError } from '../../../runtime/base/errors.ts'
import { connectNats } from '../../../runtime/network/nats/connect.ts'
import { ConsumerSlot, job } from './nats-channels.ts'

export interface SlowThreadRequest {
  readonly url: string
  readonly channels: number
  /** [0] is set to 1 while it sleeps, and woken to go on. */
  readonly sleeping: Int32Array
}

export interface SlowThreadReport {
  readonly taken: readonly number[]
  readonly allEnded: boolean
  readonly failures: readonly string[]
  readonly refused: number
}

const { url, channels, sleeping } = workerData as SlowThreadRequest
const environment = realEnvironment({ log: () => undefined })
const link = await connectNats(
  { servers: [url] },
  { job, name: 'slow consumer', environment, log: () => undefined, readSecret: () => '' },
)
const failures: MillraceError[] = []
const slot = new ConsumerSlot({ transport: link.transport, environment, deadlineMs: 60_000, failures }, channels)
slot.open()
await link.flush()
parentPort!.on('message', (word: 'sleep' | 'report') => {
  if (word === 'sleep') {
    Atomics.store(sleeping, 0, 1)
    Atomics.wait(sleeping, 0, 1)
    return
  }
  const report: SlowThreadReport = {
    taken: slot.taken,
    allEnded: slot.allEnded,
    failures: failures.map(String),
    refused: slot.hub.refusedFrames,
  }
  parentPort!.postMessage(report)
})
parentPort!.postMessage('ready')
