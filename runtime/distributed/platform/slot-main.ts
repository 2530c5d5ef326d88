// A slot's thread in a worker's process: loads the runtime and waits for its setup; then it loads the job, builds its graph, connects
// to NATS and to the store, and serves one coordinator after the other.

import { flushCompileCache } from 'node:module'
import { isMainThread, parentPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { invariant } from '../../base/errors.ts'
import type { Environment } from '../../base/environment.ts'
import { SnapshotDownloader } from '../../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../../checkpoint/snapshot-writer.ts'
import type { FromSlot, SerializedError, ToSlot } from '../../control/contract.ts'
import { createLink, linkDeadlineMs, linkDeadlineMsMin } from '../../control/link.ts'
import { serializeError } from '../../control/serialized-error.ts'
import { BoundLater } from '../../control/worker-link.ts'
import { placeTasks } from '../../coordinator/placement.ts'
import { plannedFailpoints } from '../../local/failpoint-plan.ts'
import { loadJob } from '../../local/job-module.ts'
import { NodeFiles } from '../../local/platform/node-files.ts'
import { ownProcess } from '../../local/platform/own-process.ts'
import { realEnvironment } from '../../local/platform/real-environment.ts'
import type { FromThread } from '../../local/platform/runtime-thread.ts'
import { failOnStrayErrors } from '../../local/platform/stray-errors.ts'
import { connectNats } from '../../network/nats/connect.ts'
import { openStores } from '../../storage/open-stores.ts'
import { Slot } from '../../worker/slot.ts'
import { graphOf } from '../job-graph.ts'
import { readSecret } from '../process-config.ts'
import { datagramsOver } from './packet-port.ts'
import type { SlotSetup, ToThread } from './slot-setup.ts'

invariant(!isMainThread && parentPort !== null, 'slot-main runs in a thread of its own')
const parent = parentPort

type Link = BoundLater<FromSlot, ToSlot>

/** The link of the moment, and what is at this end of it. */
class Served {
  link: Link = new BoundLater()
  readonly #environment: Environment
  /** Its packets wait in there until the link speaks. */
  #control: MessagePort
  /** undefined: the job, which has it, is not loaded yet. */
  #deadlineMs: number | undefined
  #slot: Slot | undefined
  #failed: SerializedError | undefined

  constructor(environment: Environment, control: MessagePort) {
    this.#environment = environment
    this.#control = control
  }

  attach(control: MessagePort): void {
    this.#control = control
    this.link = new BoundLater()
    if (this.#deadlineMs !== undefined) this.speak(this.#deadlineMs)
    this.#slot?.attach(this.link)
    if (this.#failed !== undefined) this.failed(this.#failed)
  }

  /** From now on; once. */
  speak(deadlineMs: number): void {
    this.#deadlineMs = deadlineMs
    const port = datagramsOver(this.#control)
    this.link.bind(createLink({ port, environment: this.#environment, deadlineMs }))
  }

  become(slot: Slot): void {
    this.#slot = slot
  }

  /** There is no slot, and every coordinator is told why. */
  failed(error: SerializedError): void {
    this.#failed = error
    if (this.#deadlineMs === undefined) this.speak(linkDeadlineMsMin)
    this.link.send({ type: 'failed', task: undefined, attempt: undefined, error })
  }
}

parent.once('message', (setup: ToThread) => {
  invariant(setup.type === 'setup', 'a thread is told first which slot it is')
  void main(setup)
})
flushCompileCache()
say({ type: 'ready' })

async function main(setup: SlotSetup): Promise<void> {
  const { slot: id, worker, config } = setup
  const environment = realEnvironment({
    log: (level, message, fields) => say({ type: 'log', level, message, fields: { slot: id, ...fields } }),
    failpoints: plannedFailpoints(setup.failpoints, ownProcess),
  })
  const served = new Served(environment, setup.control)
  parent.on('message', (message: ToThread) => {
    if (message.type === 'detach') served.link.lose(message.reason)
    else if (message.type === 'attach') served.attach(message.control)
  })
  try {
    const job = await loadJob(config.job.file)
    const graph = graphOf(job, config, setup.start.parallelism)
    served.speak(linkDeadlineMs(graph.settings))
    const files = new NodeFiles()
    const [stores, nats] = await Promise.all([
      openStores({ storage: config.storage, files, environment, probe: false }),
      connectNats(config.nats, {
        job: config.job.id,
        name: `${worker}, slot ${id}`,
        environment,
        log: (level, message, fields) => environment.log(level, message, fields),
        readSecret: (file) => readSecret('A secret of nats', file, files),
      }),
    ])
    const { slotCount } = placeTasks(graph)
    const slot = new Slot({
      slot: id,
      job: config.job.id,
      graph,
      environment,
      files,
      transport: nats.transport,
      control: served.link,
      outlivesCoordinator: true,
      snapshotWriters: new SnapshotUploader({
        store: stores.objects,
        savepoints: stores.savepoints,
        environment,
        writers: slotCount,
      }),
      snapshotReader: new SnapshotDownloader({ store: stores.objects, foreign: stores.foreign, environment }),
    })
    served.become(slot)
    // A process that is killed writes nothing down at its end.
    flushCompileCache()
    failOnStrayErrors(slot)
  } catch (error) {
    served.failed(serializeError(error))
  }
}

function say(message: FromThread): void {
  parent.postMessage(message)
}
