// One thread that is to be a slot. It loads the runtime, says so, and waits: what it is to be comes as a message, once.

import { MessageChannel, Worker } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type { LogSink } from './real-environment.ts'
import type { SpareThread } from './spare-threads.ts'

/** Bounds what short-lived records take of each thread's memory: Node 24 would let it grow to 192 MB. The flights job takes the same processor time with either (measured). */
const maxYoungGenerationSizeMb = 64

export type FromThread =
  /** The runtime is loaded. */
  | { readonly type: 'ready' }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>> | undefined
    }

/** `ToThread`: what it is told, the first of it what it is to be. */
export class RuntimeThread<ToThread> implements SpareThread {
  readonly worker: Worker
  /** The runtime is loaded. Never settles for a thread that ends before. */
  readonly ready: Promise<void>
  /** Whatever ended it. */
  readonly exited: Promise<void>

  /** Of what it says. Without one until there is one: what a thread that is no slot yet has to say is said by the next one that is started. */
  protected log: LogSink | undefined

  constructor(entry: URL, log: LogSink | undefined) {
    this.log = log
    this.worker = new Worker(entry, { resourceLimits: { maxYoungGenerationSizeMb } })
    // Until it is a slot, nothing waits for it.
    this.worker.unref()
    this.exited = new Promise((resolve) => void this.worker.once('exit', () => resolve()))
    this.ready = new Promise((resolve) => {
      this.worker.on('message', (message: FromThread) => {
        if (message.type === 'ready') return resolve()
        return this.log?.(message.level, message.message, message.fields)
      })
    })
  }

  /** Something waits for it from now on. The answer is the other end of the port that the message gives it. */
  protected connect(message: (control: MessagePort) => ToThread): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.worker.ref()
    this.say(message(port2), port2)
    return port1
  }

  /** `port`: goes over to it with the message. */
  protected say(message: ToThread, port?: MessagePort): void {
    this.worker.postMessage(message, port === undefined ? [] : [port])
  }

  async end(): Promise<void> {
    await this.worker.terminate()
    await this.exited
  }
}
