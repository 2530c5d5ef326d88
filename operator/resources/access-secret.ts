// What a job's parts know each other by: tokens, the coordinator's certificate, and credentials for NATS. The one Secret that the operator
// makes for a job. Each pod mounts only the keys that it needs; the authority's key is mounted nowhere.

import { Buffer } from 'node:buffer'
import { childMetadata } from './labels.ts'
import { accessName } from './names.ts'
import type { KubernetesObject, OwnerJob } from './objects.ts'
import { accessKeys } from './process-config.ts'

export interface Access {
  readonly workerToken: string
  readonly ownerToken: string
  readonly readerToken: string
  /** PEM; more than one certificate after a change of the authority. */
  readonly authority: string
  readonly authorityKey: string
  readonly certificate: string
  readonly certificateKey: string
  /** A .creds file; undefined: the job has other credentials. */
  readonly natsCredentials: string | undefined
}

type Random = (bytes: number) => Uint8Array

/** 256 bits each. */
export function newTokens(random: Random): Pick<Access, 'workerToken' | 'ownerToken' | 'readerToken'> {
  const token = (): string => Buffer.from(random(32)).toString('base64url')
  return { workerToken: token(), ownerToken: token(), readerToken: token() }
}

/** Without access: what is known of it in a rendering. */
export function accessSecret(job: OwnerJob, access: Access | undefined): KubernetesObject {
  const entries = Object.entries(access ?? {}) as readonly (readonly [keyof Access, string | undefined])[]
  const data = entries.flatMap(([name, text]) =>
    text === undefined ? [] : [[accessKeys[name], Buffer.from(text).toString('base64')] as const],
  )
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: childMetadata({ job, component: 'access', name: accessName(job) }),
    type: 'Opaque',
    ...(access !== undefined && { data: Object.fromEntries(data) }),
  }
}

/** Of a Secret as it was read; undefined: something is missing, and all of it is made anew. */
export function readAccess(data: Readonly<Record<string, string>> | undefined): Access | undefined {
  const text = (name: keyof Access): string | undefined => {
    const encoded = data?.[accessKeys[name]]
    return encoded === undefined || encoded === '' ? undefined : Buffer.from(encoded, 'base64').toString()
  }
  const names = Object.keys(accessKeys) as (keyof Access)[]
  if (names.some((name) => name !== 'natsCredentials' && text(name) === undefined)) return undefined
  return Object.fromEntries(names.map((name) => [name, text(name)])) as unknown as Access
}
