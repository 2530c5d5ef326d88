// The config that coordinator, workers and short pods of a job read: the spec in the words of the runtime. Secrets stand in files.

import { PROCESS_CONFIG_VERSION } from '../../runtime/distributed/contract.ts'
import { settingsOfSpec } from '../../crds/job-settings.ts'
import type { EffectiveSpec, StartBegin } from '../contract.ts'
import type { NatsCredentials } from './cluster-facts.ts'
import { coordinatorName } from './names.ts'
import type { OwnerJob } from './objects.ts'

export const folders = {
  /** Where process.json is. */
  config: '/etc/millrace',
  /** The code's files side by side, where no package of the runtime is found by accident. */
  code: '/opt/job',
  access: '/var/run/millrace/access',
  s3: '/var/run/millrace/s3',
  nats: '/var/run/millrace/nats',
} as const

export const configFile = `${folders.config}/process.json`
export const ports = { rest: 8081, workers: 8082 } as const

/** From SIGTERM to the worker's own end; the kubelet waits a little longer. */
export const workerGraceMs = 25_000

/** Keys of Secrets. */
export const accessKeys = {
  workerToken: 'worker-token',
  ownerToken: 'owner-token',
  readerToken: 'reader-token',
  authority: 'ca.crt',
  authorityKey: 'ca.key',
  certificate: 'tls.crt',
  certificateKey: 'tls.key',
  natsCredentials: 'nats.creds',
} as const
export const s3Keys = { accessKeyId: 'access-key-id', secretAccessKey: 'secret-access-key' } as const

export interface ConfiguredJob {
  readonly job: OwnerJob
  readonly spec: EffectiveSpec
  /** The job file's key among the code's files; undefined: the code is in the image. */
  readonly codeKey: string | undefined
  readonly natsCredentials: NatsCredentials
}

/** ProcessConfig v1 without what a start adds: see startedConfig. */
export function processConfig({
  job,
  spec,
  codeKey,
  natsCredentials,
}: ConfiguredJob): Readonly<Record<string, unknown>> {
  const { program, maxParallelism, nats, worker, logLevel } = spec
  const host = coordinatorHost(job)
  const access = (key: keyof typeof accessKeys): string => `${folders.access}/${accessKeys[key]}`
  return {
    version: PROCESS_CONFIG_VERSION,
    job: {
      id: job.uid,
      name: job.name,
      file: codeKey === undefined ? program.module.path : `${folders.code}/${codeKey}`,
      args: program.args,
      ...(maxParallelism !== undefined && { maxParallelism }),
      settings: settingsOfSpec(spec),
    },
    storage: { checkpoints: jobStorage(job, spec), ...savepointsConfig(job, spec), ...s3Config(spec) },
    nats: {
      servers: (nats?.url ?? '').split(','),
      ...natsFile(natsCredentials),
      ...(nats?.tls === true && { tls: {} }),
    },
    coordinator: {
      workersAddress: `${host}:${ports.workers}`,
      restAddress: `${host}:${ports.rest}`,
      tls: { certFile: access('certificate'), keyFile: access('certificateKey'), caFile: access('authority') },
    },
    tokens: {
      workerFile: access('workerToken'),
      ownerFile: access('ownerToken'),
      readerFile: access('readerToken'),
    },
    kubernetes: { namespace: job.namespace, name: job.name },
    worker: { slots: worker.slots, graceMs: workerGraceMs },
    logLevel,
  }
}

/** With which start of the job it is, and how that begins. */
export function startedConfig(
  config: Readonly<Record<string, unknown>>,
  start: number,
  { parallelism, from, empty, goesOn, allowNonRestoredState }: StartBegin,
): Readonly<Record<string, unknown>> {
  const restore = {
    ...(from !== undefined && { from }),
    ...(empty !== undefined && { empty }),
    ...(goesOn !== undefined && { goesOn }),
    ...(allowNonRestoredState !== undefined && { allowNonRestoredState }),
  }
  const job = config['job'] as Readonly<Record<string, unknown>>
  return { ...config, job: { ...job, start, parallelism, ...(Object.keys(restore).length > 0 && { restore }) } }
}

/** The job's own prefix, which no namesake shares. */
export function jobStorage(job: OwnerJob, { storage }: EffectiveSpec): string {
  return storageOfJob(storage?.checkpoints ?? '', job)
}

function savepointsConfig(job: OwnerJob, { storage }: EffectiveSpec): Readonly<Record<string, unknown>> {
  return storage?.savepoints === undefined ? {} : { savepoints: storageOfJob(storage.savepoints, job) }
}

/** Its own folder below an address that it shares with others. */
export function storageOfJob(address: string, { namespace, name, uid }: OwnerJob): string {
  return `${address.replace(/\/+$/, '')}/${namespace}/${name}/${uid}`
}

/** The `storage.checkpoints` of which that is the job's own prefix, or lies within it. undefined: it is elsewhere. */
export function checkpointsOf({ namespace, name, uid }: OwnerJob, place: string): string | undefined {
  const [checkpoints, ...rest] = `${place}/`.split(`/${namespace}/${name}/${uid}/`)
  return rest.length === 0 ? undefined : checkpoints
}

/** By which workers and the operator reach it. */
export function coordinatorHost(job: OwnerJob): string {
  return `${coordinatorName(job)}.${job.namespace}.svc`
}

/**
 * All names that the coordinator's certificate is for. Of one's own machine, too: there a person meets it by `kubectl port-forward`. It
 * proves that to holders of the job's own authority alone, and to them nobody else.
 */
export function coordinatorHosts(job: OwnerJob): readonly string[] {
  const host = coordinatorHost(job)
  const name = coordinatorName(job)
  return [host, `${host}.cluster.local`, `${name}.${job.namespace}`, name, 'localhost', '127.0.0.1', '::1']
}

function s3Config({ storage }: EffectiveSpec): Readonly<Record<string, unknown>> {
  if (storage?.s3 === undefined) return {}
  const { credentialsSecret, ...s3 } = storage.s3
  if (credentialsSecret === undefined) return { s3 }
  const files = {
    accessKeyIdFile: `${folders.s3}/${s3Keys.accessKeyId}`,
    secretAccessKeyFile: `${folders.s3}/${s3Keys.secretAccessKey}`,
  }
  return { s3: { ...s3, ...files } }
}

function natsFile(credentials: NatsCredentials): Readonly<Record<string, unknown>> {
  switch (credentials.kind) {
    case 'of the job':
      return { credentialsFile: `${folders.access}/${accessKeys.natsCredentials}` }
    case 'secret':
      return { credentialsFile: `${folders.nats}/${accessKeys.natsCredentials}` }
    case 'none':
      return {}
    default:
      return credentials satisfies never
  }
}
