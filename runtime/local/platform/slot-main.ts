// A slot's thread: loads the runtime and waits for its setup; then it loads the job, builds its graph, and serves the coordinator over
// its port.

import { flushCompileCache } from 'node:module'
import { isMainThread, parentPort } from 'node:worker_threads'
import { invariant } from '../../base/errors.ts'
import { SnapshotDownloader } from '../../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../../checkpoint/snapshot-writer.ts'
import type { FromSlot, ToSlot } from '../../control/contract.ts'
import { createDirectLink } from '../../control/direct-link.ts'
import { buildGraph } from '../../job/build-graph.ts'
import type { DirectoryStore } from '../../storage/directory-store.ts'
import { ForeignFiles } from '../../storage/foreign-files.ts'
import { attachLocalStores } from '../../storage/local-stores.ts'
import { serializeError } from '../../control/serialized-error.ts'
import { Slot } from '../../worker/slot.ts'
import { loadJob } from '../job-module.ts'
import { plannedFailpoints } from '../failpoint-plan.ts'
import { NodeFiles } from './node-files.ts'
import { ownProcess } from './own-process.ts'
import { realEnvironment } from './real-environment.ts'
import type { FromThread } from './runtime-thread.ts'
import { failOnStrayErrors } from './stray-errors.ts'
import { ThreadTransport } from './thread-transport.ts'
import type { PeerMessage, SlotSetup } from './slot-setup.ts'

invariant(!isMainThread && parentPort !== null, 'slot-main runs in a thread of its own')
const parent = parentPort
parent.once('message', (setup: SlotSetup) => void main(setup))
flushCompileCache()
say({ type: 'ready' })

async function main(setup: SlotSetup): Promise<void> {
  const control = createDirectLink<FromSlot, ToSlot>(setup.control)
  const transport = new ThreadTransport(setup.slot)
  parent.on('message', (message: PeerMessage) => {
    if (message.type === 'peer') transport.addPeer(message.slot, message.port)
    else transport.removePeer(message.slot)
  })
  const environment = realEnvironment({
    log: (level, message, fields) => say({ type: 'log', level, message, fields }),
    failpoints: plannedFailpoints(setup.failpoints, ownProcess),
  })
  try {
    const job = await loadJob(setup.jobFile)
    const { args, parallelism, parallelismDefault, maxParallelism, settings, jobName: name } = setup
    const graph = buildGraph(job, {
      args,
      parallelism,
      parallelismDefault,
      maxParallelism,
      settings,
      name,
      job: setup.job,
    })
    const files = new NodeFiles()
    const at = (folder: string): DirectoryStore => attachLocalStores({ files, folder, environment }).objects
    const store = at(setup.storeFolder)
    const savepoints = setup.savepointsFolder === undefined ? undefined : { objects: at(setup.savepointsFolder) }
    const slot = new Slot({
      slot: setup.slot,
      job: setup.job,
      graph,
      environment,
      files,
      transport,
      control,
      snapshotWriters: new SnapshotUploader({ store, savepoints, environment, writers: setup.slotCount }),
      snapshotReader: new SnapshotDownloader({ store, foreign: new ForeignFiles(files), environment }),
    })
    // A process that is killed writes nothing down at its end.
    flushCompileCache()
    failOnStrayErrors(slot)
  } catch (error) {
    control.send({ type: 'failed', task: undefined, attempt: undefined, error: serializeError(error) })
  }
}

function say(message: FromThread): void {
  parent.postMessage(message)
}
