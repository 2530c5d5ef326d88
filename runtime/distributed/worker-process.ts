// A worker's process, put together: its config, its control connection to NATS, its threads, and its way to the coordinator.

import type { Environment } from '../base/environment.ts'
import type { MillraceError } from '../base/errors.ts'
import type { FailpointPlan } from '../local/failpoint-plan.ts'
import { connectNats } from '../network/nats/connect.ts'
import type { FileSystem } from '../storage/contract.ts'
import type { NatsLink, ProcessConfig } from './contract.ts'
import { buildOf } from './build-identity.ts'
import { dial } from './platform/dial.ts'
import { ThreadHost } from './platform/thread-host.ts'
import { parseAddress, readSecret } from './process-config.ts'
import { WorkerShell } from './worker-shell.ts'
import type { WorkerEnd } from './worker-shell.ts'

const slotsUsual = 1
/** Below the 30 s that Kubernetes gives a pod as a rule. */
const graceMsUsual = 25_000

export interface WorkerProcessOptions {
  readonly config: ProcessConfig
  /** Unique among the workers of the job, and best the same after a restart. */
  readonly name: string
  /** Wins over the config; 1 when neither says anything. */
  readonly slots: number | undefined
  readonly runtimeVersion: string
  readonly environment: Environment
  readonly files: FileSystem
  readonly failpoints: FailpointPlan
}

export interface RunningWorker {
  readonly ended: Promise<WorkerEnd>
  /** To be called on a signal to end. */
  leave(): void
}

/** Rejects with MR-D32 for a secret, MR-W… for NATS; afterwards `ended` says how it went. */
export async function startWorker(options: WorkerProcessOptions): Promise<RunningWorker> {
  const { config, name, environment, files } = options
  const { id: job } = config.job
  const { workersAddress, tls } = config.coordinator
  const token = await readSecret('tokens.workerFile', config.tokens.workerFile, files)
  const readCa = async (): Promise<string | undefined> =>
    tls === undefined ? undefined : readSecret('coordinator.tls.caFile', tls.caFile, files)
  // What is wrong now is said now; later it may be on its way to be renewed.
  await readCa()
  const nats = await connectNats(config.nats, {
    job,
    name: `${name}, control`,
    environment,
    log: (level, message, fields) => environment.log(level, message, fields),
    readSecret: (file) => readSecret('A secret of nats', file, files),
  })
  const build = await buildOf(config, files)
  const slotCount = options.slots ?? config.worker?.slots ?? slotsUsual
  const { failpoints } = options
  const slots = new ThreadHost({ config, worker: name, slotCount, environment, failpoints, control: nats })
  const shell = new WorkerShell({
    agent: {
      job,
      worker: name,
      instance: environment.random.id(),
      token,
      runtimeVersion: options.runtimeVersion,
      build,
      slots: slotCount,
      coordinator: workersAddress,
    },
    environment,
    slots,
    dial: (handlers) =>
      dialWithCa(readCa, (ca) => dial({ address: parseAddress(workersAddress)!, ca, ...handlers }), handlers),
  })
  environment.log('info', 'the worker looks for its coordinator', {
    job,
    coordinator: workersAddress,
    slots: slotCount,
  })
  return {
    ended: closing(shell.ended, nats),
    leave: () => shell.leave(config.worker?.graceMs ?? graceMsUsual),
  }
}

async function closing(ended: Promise<WorkerEnd>, nats: NatsLink): Promise<WorkerEnd> {
  const end = await ended
  await nats.close()
  return end
}

/** The authority's certificate is read for each attempt, so that a renewed one is found. */
function dialWithCa(
  readCa: () => Promise<string | undefined>,
  open: (ca: string | undefined) => { giveUp(): void },
  { onFailed }: { readonly onFailed: (reason: string) => void },
): { giveUp(): void } {
  let attempt: { giveUp(): void } | undefined
  let givenUp = false
  readCa().then(
    (ca) => {
      if (!givenUp) attempt = open(ca)
    },
    (error: MillraceError) => {
      if (!givenUp) onFailed(error.message)
    },
  )
  return {
    giveUp: () => {
      givenUp = true
      attempt?.giveUp()
    },
  }
}
