// A StreamJob as it was written, read by the schema, with the chart's defaults beneath, and held against what schema and CEL cannot say.
// The webhook and every reconcile use it. Each problem names the field, why it is wrong and what to do; all that is wrong is said at once.

import { laterFieldsOf } from '../crds/not-yet.ts'
import { pathText, readDocument } from '../crds/problems.ts'
import { thousandthsOf } from '../crds/quantities.ts'
import { SNAPSHOT_FOLDER } from '../crds/resource.ts'
import { streamJob } from '../crds/stream-job.ts'
import type { EffectiveSpec, Observed } from './contract.ts'
import { specHash } from './revision.ts'
import { podTemplateProblems } from './validate-pod-template.ts'

/**
 * What the chart's `defaults:` lay beneath every spec. A group (`storage`, `nats`, `resources`) that a spec has is the spec's alone. Another
 * place of the chart's storage is for jobs that begin.
 */
export interface SpecDefaults {
  readonly image?: string
  readonly storage?: EffectiveSpec['storage']
  readonly nats?: EffectiveSpec['nats']
  readonly serviceAccountName?: string
  readonly coordinatorResources?: EffectiveSpec['coordinator']['resources']
  readonly workerResources?: EffectiveSpec['worker']['resources']
}

export interface ToValidate {
  /** The object as the API server has it. */
  readonly document: unknown
  readonly defaults: SpecDefaults
  /** What runs, or what the next start would go on from; undefined: the job has not begun, or that is not known. */
  readonly running: EffectiveSpec | undefined
  /** Of a job that has begun by a revision which is not there. */
  readonly traces?: StateTraces | undefined
}

/** What the starts of a job have left of where its state is. */
export interface StateTraces {
  /** As `spec.storage.checkpoints` said it. undefined: nothing tells. */
  readonly checkpoints: string | undefined
  readonly maxParallelism: number | undefined
}

export function validate({ document, defaults, running, traces }: ToValidate): Observed['spec'] {
  const later = laterFieldsOf(document)
  const notYet = later.map(({ path, instead }) => `${pathText(path)} is not there yet; ${instead}.`)
  const read = readDocument(streamJob, document)
  if (read.kind === 'does not fit') {
    const known = later.map(({ path }) => pathText(path))
    const others = read.problems.filter(({ path }) => !known.includes(pathText(path)))
    return { fits: false, problems: [...notYet, ...others.map(({ message }) => `${message}.`)] }
  }
  const own = read.object.spec
  const spec = withDefaults(own, { ...defaults, storage: storageDefault(defaults, running) })
  const image = spec.program.image
  const problems = [
    ...notYet,
    ...nameProblems(read.object.metadata.name),
    ...programProblems(spec),
    ...storageProblems(spec),
    ...natsProblems(spec),
    ...restoreProblems(spec),
    ...resourceProblems(spec),
    ...freeFormProblems('spec.program.args', own.program.args),
    ...(['coordinator', 'worker'] as const).flatMap((pods) => {
      const [path, template] = [`spec.${pods}.podTemplate`, own[pods].podTemplate]
      const tooMuch = freeFormProblems(path, template)
      return tooMuch.length > 0 ? tooMuch : podTemplateProblems(path, template)
    }),
    ...(running === undefined ? [] : changeProblems(spec, running)),
    ...(traces === undefined ? [] : traceProblems({ own, spec, traces })),
  ]
  if (problems.length > 0 || image === undefined) return { fits: false, problems }
  return { fits: true, spec, image, hash: specHash(own) }
}

/** A segment of a key in the store; all other names that are made of it are cut. */
const nameMax = 128

function nameProblems(name: string): string[] {
  if (name.length <= nameMax) return []
  return [
    `metadata.name is ${name.length} characters long; it must be at most ${nameMax}, as the job's folder in the store is called by it. Make a StreamJob with a shorter name.`,
  ]
}

/**
 * Half of what all annotations of an object may have: a short pod has the job's args in one. kubectl apply puts the whole manifest into another,
 * and a revision holds everything twice.
 */
const freeFormBytesMax = 128 * 1024
/** So deep nobody's args are; a few thousand exhaust the stack of whoever reads them. */
const depthMax = 100

function freeFormProblems(path: string, value: unknown): string[] {
  if (value === undefined) return []
  if (isDeeper(value, depthMax)) return [`${path} is nested more than ${depthMax} levels deep; make it flatter.`]
  const bytes = Buffer.byteLength(JSON.stringify(value))
  if (bytes <= freeFormBytesMax) return []
  return [
    `${path} has ${bytes} bytes; it must have at most ${freeFormBytesMax}. Put what is large into a file of the image or of the code's ConfigMap.`,
  ]
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

/** At another place than the chart's of now a job has its state already; at the same one its endpoint and credentials are the chart's. */
function storageDefault({ storage }: SpecDefaults, running: EffectiveSpec | undefined): SpecDefaults['storage'] {
  const [there, here] = [running?.storage?.checkpoints, storage?.checkpoints]
  const isElsewhere = there !== undefined && (here === undefined || withoutSlash(there) !== withoutSlash(here))
  return isElsewhere ? running!.storage : storage
}

function withDefaults(own: EffectiveSpec, defaults: SpecDefaults): EffectiveSpec {
  const image = own.program.image ?? defaults.image
  const storage = own.storage?.checkpoints === undefined && own.storage?.s3 === undefined ? defaults.storage : undefined
  const nats = own.nats ?? defaults.nats
  const account = own.serviceAccountName ?? defaults.serviceAccountName
  const coordinator = own.coordinator.resources ?? defaults.coordinatorResources
  const worker = own.worker.resources ?? defaults.workerResources
  return {
    ...own,
    program: { ...own.program, ...(image !== undefined && { image }) },
    ...((storage ?? own.storage) !== undefined && { storage: { ...storage, ...own.storage } }),
    ...(nats !== undefined && { nats }),
    ...(account !== undefined && { serviceAccountName: account }),
    coordinator: { ...own.coordinator, ...(coordinator && { resources: coordinator }) },
    worker: { ...own.worker, ...(worker && { resources: worker }) },
  }
}

function programProblems({ program }: EffectiveSpec): string[] {
  const problems: string[] = []
  if (program.image === undefined)
    problems.push('spec.program.image is missing, and the chart has no default; name the image that holds the runtime.')
  const file = program.module.path
  if (file !== undefined && !file.startsWith('/'))
    problems.push(`spec.program.module.path is "${file}"; on a cluster it is a file of the image: begin it with /.`)
  return problems
}

/** As the job's processes read it (runtime/storage/paths.ts), which a test holds it against. */
export const STORAGE_ADDRESS =
  /^(s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,127})*\/*|file:\/\/\/.*)$/

function storageProblems({ storage, serviceAccountName }: EffectiveSpec): string[] {
  const problems: string[] = []
  if (storage?.checkpoints === undefined) {
    problems.push(
      'spec.storage.checkpoints is missing, and the chart has no default; say where the state is kept, such as s3://bucket/prefix.',
    )
    return problems
  }
  const addresses = Object.entries({ checkpoints: storage.checkpoints, savepoints: storage.savepoints })
  for (const [name, address] of addresses) {
    if (address === undefined || STORAGE_ADDRESS.test(address)) continue
    problems.push(
      `spec.storage.${name} is "${address}"; it must be s3://bucket/prefix (3 to 63 small letters, digits, . and - in the bucket, the first and the last no . or -; letters, digits and ._=- in the prefix) or file:///folder.`,
    )
  }
  const isS3 = addresses.some(([, address]) => address?.startsWith('s3://') === true)
  if (isS3 && storage.s3?.credentialsSecret === undefined && serviceAccountName === undefined)
    problems.push(
      'spec.storage.s3.credentialsSecret is missing; name a Secret with the credentials, or set spec.serviceAccountName to an account with a workload identity.',
    )
  const endpoint = storage.s3?.endpoint
  if (endpoint !== undefined && !/^https?:\/\/[^@\s]+$/.test(endpoint))
    problems.push(
      'spec.storage.s3.endpoint must be http://host:port or https://host:port without user and password; those stand in credentialsSecret.',
    )
  return problems
}

function natsProblems({ nats }: EffectiveSpec): string[] {
  if (nats === undefined)
    return [
      'spec.nats is missing, and the chart has no default; give the url of a NATS server, such as nats://nats:4222.',
    ]
  if (nats.url.split(',').every((url) => /^(nats|tls):\/\/[^@\s]+$/.test(url))) return []
  return [
    'spec.nats.url must be nats://host:port or tls://host:port without user and password; those stand in credentialsSecret.',
  ]
}

function restoreProblems({ restoreFrom, restoreNonce }: EffectiveSpec): string[] {
  if (restoreFrom === undefined)
    return restoreNonce === undefined
      ? []
      : ['spec.restoreNonce asks to start from spec.restoreFrom, which is missing; name a snapshot, or latest.']
  if (restoreFrom === 'latest' || SNAPSHOT_FOLDER.test(restoreFrom)) return []
  return [
    `spec.restoreFrom is "${restoreFrom}"; it must be latest or the folder of a snapshot, such as s3://bucket/prefix/savepoint-7.`,
  ]
}

function resourceProblems({ worker, coordinator }: EffectiveSpec): string[] {
  const problems: string[] = []
  for (const [name, { resources }] of Object.entries({ worker, coordinator }))
    for (const [list, amounts] of Object.entries({ requests: resources?.requests, limits: resources?.limits }))
      for (const resource of Object.keys(amounts ?? {})) {
        const path = `spec.${name}.resources.${list}.${resource}`
        if (!containerResource.test(resource))
          problems.push(
            `${path}: a container has no such resource; it has cpu, memory, ephemeral-storage, hugepages-<size>, and those with a domain, such as nvidia.com/gpu.`,
          )
        const limit = thousandthsOf(resources?.limits?.[resource])
        const amount = thousandthsOf(amounts?.[resource])
        if (list === 'requests' && amount !== undefined && limit !== undefined && amount > limit)
          problems.push(`${path} is more than limits.${resource}; no pod can be made of that.`)
      }
  return problems
}
/** Found out when pods are made, after the running ones were taken down. */
const containerResource = /^(cpu|memory|ephemeral-storage|hugepages-[0-9A-Za-z.]+|[a-z0-9.-]+\/[A-Za-z0-9._-]+)$/

/** The chart's storage of now may be another than that of then: it is taken only where something tells that it is not. */
function traceProblems({
  own,
  spec,
  traces: { checkpoints, maxParallelism },
}: {
  readonly own: EffectiveSpec
  readonly spec: EffectiveSpec
  readonly traces: StateTraces
}): string[] {
  if (checkpoints === undefined && own.storage?.checkpoints === undefined)
    return [
      "spec.storage.checkpoints is missing, and nothing tells where the job's state is: the ControllerRevision that it ran by is not there. Say where the state is, as the chart's default may have changed.",
    ]
  return changeProblems(spec, {
    ...(checkpoints !== undefined && { storage: { checkpoints } }),
    ...(maxParallelism !== undefined && { maxParallelism }),
  })
}

/** What the state that is there does not allow. */
function changeProblems(spec: EffectiveSpec, running: Pick<EffectiveSpec, 'storage' | 'maxParallelism'>): string[] {
  const problems: string[] = []
  const [before, after] = [running.storage?.checkpoints, spec.storage?.checkpoints]
  if (before !== undefined && after !== undefined && withoutSlash(before) !== withoutSlash(after))
    problems.push(
      `spec.storage.checkpoints changes from ${before} to ${after}, where none of the job's state is; set it back, or take a savepoint and make a new StreamJob with restoreFrom.`,
    )
  const [groups, wanted] = [running.maxParallelism, spec.maxParallelism]
  if (groups !== undefined && wanted !== undefined && groups !== wanted && spec.upgradeMode !== 'stateless')
    problems.push(
      `spec.maxParallelism changes from ${groups} to ${wanted}, and keyed state is laid out by it; set it back, or give the state up by upgradeMode stateless.`,
    )
  return problems
}

const withoutSlash = (text: string): string => text.replace(/\/+$/, '')
