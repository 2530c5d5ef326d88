// What makes one revision of a job another one: hashes of what the user wrote and of the code. Pure.
//
// Neither today's chart, nor a default of the schema, nor the builder of children is part of a hash: upgrading the operator restarts no job.
// Not part of it is also what changes nothing in the processes of the job: how it is upgraded, asked for savepoints, deleted.

import { createHash } from 'node:crypto'
import { streamJob } from '../crds/stream-job.ts'
import { API_VERSION } from '../crds/resource.ts'
import { invariant } from '../runtime/base/errors.ts'
import { settingNames } from './contract.ts'
import type { EffectiveSpec, Revision, Settings } from './contract.ts'
import { codeName } from './resources/names.ts'
import { childName } from './revision-names.ts'

/** `parallelism` is compared apart. */
const apart: ReadonlySet<string> = new Set(settingNames)

export function withoutSettings(spec: EffectiveSpec): Omit<EffectiveSpec, keyof Settings> {
  return Object.fromEntries(Object.entries(spec).filter(([name]) => !apart.has(name))) as Omit<
    EffectiveSpec,
    keyof Settings
  >
}

/** Of the spec as its user wrote it, read by the schema and without the chart's defaults. Remembered: one spec is asked for many times. */
export function specHash(own: EffectiveSpec): string {
  const known = specHashes.get(own)
  if (known !== undefined) return known
  const hash = sha256(canonicalJson(withoutDefaults(withoutSettings(own), defaultsOfSchema())))
  specHashes.set(own, hash)
  return hash
}
const specHashes = new WeakMap<EffectiveSpec, string>()

/** Of the code's files: names and contents. */
export function codeHash(files: Readonly<Record<string, string>>): string {
  return sha256(canonicalJson(files))
}

export interface CodeName {
  readonly hash: string
  readonly key: string
}

/** Of what a revision is made of. `code` undefined: it is in the image, which the spec's hash covers. */
export function revisionHash(options: { readonly specHash: string; readonly code: CodeName | undefined }): string {
  return sha256(canonicalJson([options.specHash, options.code?.hash ?? null]))
}

export interface RevisionParts {
  readonly job: { readonly name: string; readonly uid: string }
  readonly number: number
  readonly spec: EffectiveSpec
  readonly specHash: string
  readonly image: string
  readonly code: CodeName | undefined
  readonly operatorVersion: string
}

/** Its rendering is made by whoever stores it. */
export function revisionOf({ job, number, spec, specHash, image, code, operatorVersion }: RevisionParts): Revision {
  return {
    version: 1,
    name: revisionName(job, number),
    number,
    spec,
    image,
    code: code && { ...code, configMap: codeName(job, code.hash) },
    operatorVersion,
    rendering: {},
    hash: revisionHash({ specHash, code }),
    parallelism: spec.parallelism,
  }
}

export function revisionName(job: { readonly name: string; readonly uid: string }, number: number): string {
  return childName(job, `r${number}`)
}

/** A spec that the preflight refused is tried again when any of this changes: it decides what state there is to fit, and a try costs nothing. */
export function attemptKey(hash: string, spec: EffectiveSpec): string {
  const { upgradeMode, allowNonRestoredState, restartNonce = null, restoreNonce = null, restoreFrom = null } = spec
  return sha256(
    canonicalJson([hash, upgradeMode, allowNonRestoredState, restartNonce, restoreNonce, restoreFrom]),
  ).slice(0, 16)
}

/** One that was rolled back is tried again when this changes: a try takes the job down, so a setting that is tidied up is none. */
export function rolledBackKey(hash: string, spec: EffectiveSpec): string {
  const { restartNonce = null, restoreNonce = null } = spec
  return sha256(canonicalJson([hash, restartNonce, restoreNonce])).slice(0, 16)
}

/** Equal values give equal texts, whatever the order of their fields; fields that are undefined are not there. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([left], [right]) => (left < right ? -1 : 1)))
      : inner,
  )
}

/** 64 hexadecimal digits. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** What equals its default says nothing: a field that a later schema adds with a default changes no hash. */
function withoutDefaults(value: unknown, defaults: unknown): unknown {
  if (!isRecord(value) || !isRecord(defaults)) return value
  const left = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    if (canonicalJson(inner ?? null) === canonicalJson(defaults[name] ?? null)) return []
    return [[name, withoutDefaults(inner, defaults[name])]]
  })
  return Object.fromEntries(left)
}

let schemaDefaults: EffectiveSpec | undefined
function defaultsOfSchema(): EffectiveSpec {
  if (schemaDefaults !== undefined) return schemaDefaults
  const least = {
    apiVersion: API_VERSION,
    kind: 'StreamJob',
    metadata: { name: 'a' },
    // Replaced below: no job's program equals it.
    spec: { program: { module: { path: '/' } } },
  }
  const parsed = streamJob.safeParse(least)
  invariant(parsed.success, 'the least StreamJob does not fit its schema')
  const { program, ...rest } = parsed.data.spec
  schemaDefaults = { ...rest, program: { ...program, module: {} } }
  return schemaDefaults
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
