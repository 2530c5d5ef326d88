// HEAD as bytes: one JSON document whose first field is the CRC-32 of the whole document with that field's digits as zeros.

import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { invariant } from '../base/errors.ts'
import type { ObjectKey } from './contract.ts'
import { storageError } from './errors.ts'
import { HEAD_FORMAT } from './head-contract.ts'
import type { Head, ManifestRef } from './head-contract.ts'

/** The version before is read too; the first version has none before it. */
const FORMATS_READ: readonly number[] = [HEAD_FORMAT, HEAD_FORMAT - 1].filter((format) => format >= 1)

const CHECKSUM_FIELD = '{"crc32":"'
const NO_CHECKSUM = '00000000'

export const SAVEPOINT_RESULTS_KEPT = 100
export const SAVEPOINT_REQUESTS_MAX = 100

/** Written in today's format; fields of `head` that this version does not know are written as they were read. */
export function encodeHead(head: Head): Uint8Array {
  const complaint = complaintAbout(head)
  invariant(complaint === undefined, `HEAD is not to be written: ${complaint}`)
  const bytes = new TextEncoder().encode(JSON.stringify({ crc32: NO_CHECKSUM, ...head, format: HEAD_FORMAT }))
  bytes.set(new TextEncoder().encode(checksumOf(bytes)), CHECKSUM_FIELD.length)
  return bytes
}

/** Throws MR-S10 or MR-S11, saying what is wrong; what cannot be read is never taken for absent. `where`: for the message. */
export function decodeHead(bytes: Uint8Array, where: string): Head {
  const document = parse(bytes, where)
  const format = document['format']
  if (typeof format !== 'number') throw storageError('MR-S10', `${where}: it has no format version.`)
  if (!FORMATS_READ.includes(format))
    throw storageError('MR-S11', `${where}: format ${format}; read here: ${FORMATS_READ.join(', ')}.`)
  if (!checksumHolds(bytes, document))
    throw storageError('MR-S10', `${where}: its checksum does not match its content.`)
  const { crc32: _checksum, ...fields } = document
  const checked = headSchema.safeParse(fields)
  if (!checked.success) throw storageError('MR-S10', `${where}: ${issueText(checked.error)}.`)
  const head = { ...checked.data, unconfirmed: checked.data.unconfirmed } as unknown as Head
  const complaint = complaintAbout(head)
  if (complaint !== undefined) throw storageError('MR-S10', `${where}: ${complaint}.`)
  return head
}

function parse(bytes: Uint8Array, where: string): Record<string, unknown> {
  let document: unknown
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw storageError('MR-S10', `${where}: ${bytes.length} bytes that are no JSON.`, cause)
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw storageError('MR-S10', `${where}: not a JSON object.`)
  return document as Record<string, unknown>
}

function checksumHolds(bytes: Uint8Array, document: Record<string, unknown>): boolean {
  const start = new TextDecoder().decode(bytes.subarray(0, CHECKSUM_FIELD.length))
  if (start !== CHECKSUM_FIELD) return false
  // Not slice(): a Buffer's is a view, and the caller's bytes would change.
  const blank = new Uint8Array(bytes)
  blank.set(new TextEncoder().encode(NO_CHECKSUM), CHECKSUM_FIELD.length)
  return document['crc32'] === checksumOf(blank)
}

function checksumOf(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(8, '0')
}

function issueText(error: z.ZodError): string {
  const issue = error.issues[0]
  return issue === undefined ? 'its shape is wrong' : `field ${issue.path.join('.') || '(all)'}: ${issue.message}`
}

// Loose objects: fields of later versions pass through.
const count = z.int().min(0)
const manifestSchema = z.looseObject({
  id: z.int().min(1),
  kind: z.enum(['checkpoint', 'savepoint']),
  path: z.string().min(1),
  start: count,
  completedAtMs: z.number(),
  bytes: count,
  drained: z.boolean().optional(),
})
const headSchema = z.looseObject({
  format: z.int(),
  job: z.string().min(1),
  writer: z.string().min(1),
  incarnation: z.int().min(1),
  start: count,
  restoredFrom: z.discriminatedUnion('kind', [
    z.looseObject({ kind: z.literal('empty') }),
    z.looseObject({ kind: z.literal('manifest'), manifest: manifestSchema }),
  ]),
  end: z.discriminatedUnion('kind', [
    z.looseObject({ kind: z.literal('none') }),
    z.looseObject({ kind: z.literal('suspended') }),
    z.looseObject({ kind: z.literal('stopped'), savepoint: manifestSchema }),
    z.looseObject({ kind: z.literal('finished'), drained: manifestSchema.optional() }),
    z.looseObject({ kind: z.literal('failed'), reason: z.string() }),
    z.looseObject({ kind: z.literal('cancelled'), savepoint: manifestSchema.optional() }),
  ]),
  retained: z.array(manifestSchema),
  unconfirmed: manifestSchema.optional(),
  discarding: z.array(manifestSchema),
  pins: z.array(
    z.looseObject({
      manifest: manifestSchema,
      reason: z.enum(['upgrade', 'unconfirmed', 'savepoint being read', 'restore point', 'rollback']),
    }),
  ),
  reservedIds: count,
  parallelism: z.int().min(1),
  rescaledTo: z.int().min(1).optional(),
  deployed: z.array(z.string().min(1)).optional(),
  maxParallelism: z.int().min(1),
  restarts: count,
  savepointRequests: z.array(
    z.looseObject({
      request: z.string(),
      mode: z.enum(['savepoint', 'stop', 'drain', 'rescale']),
      parallelism: z.int().min(1).optional(),
    }),
  ),
  savepointResults: z.array(
    z.looseObject({
      request: z.string(),
      outcome: z.enum(['completed', 'failed']),
      manifest: manifestSchema.optional(),
      detail: z.string(),
      start: z.int().min(1).optional(),
      mode: z.enum(['savepoint', 'stop', 'drain', 'rescale']).optional(),
      parallelism: z.int().min(1).optional(),
    }),
  ),
})

/** What makes a HEAD of the right shape impossible, as a sentence without its end. */
function complaintAbout(head: Head): string | undefined {
  if (head.writer === '') return 'it has no writer'
  const ids = head.retained.map((manifest) => manifest.id as number)
  if (ids.some((id, index) => index > 0 && id <= ids[index - 1]!))
    return `retained manifests are not in rising order: ${ids.join(', ')}`
  const beyond = head.retained.find((manifest) => manifest.id > head.reservedIds)
  if (beyond !== undefined) return `manifest ${beyond.id} lies beyond the reserved ids (${head.reservedIds})`
  if (head.retained.some((manifest) => manifest.kind !== 'checkpoint'))
    return 'a savepoint is among the retained checkpoints'
  const needed = neededPaths(head)
  const lost = head.discarding.find((manifest) => needed.has(manifest.path))
  if (lost !== undefined) return `${lost.path} is both needed and to be discarded`
  if (head.savepointResults.length > SAVEPOINT_RESULTS_KEPT)
    return `it has more than ${SAVEPOINT_RESULTS_KEPT} savepoint results`
  if (head.savepointRequests.length > SAVEPOINT_REQUESTS_MAX)
    return `it has more than ${SAVEPOINT_REQUESTS_MAX} savepoint requests`
  return undefined
}

/** Manifests that must stay whatever retention says; the retained ones are needed as well. */
function neededPaths(head: Head): Set<ObjectKey> {
  const needed: ManifestRef[] = [...head.retained, ...head.pins.map((pin) => pin.manifest)]
  if (head.unconfirmed !== undefined) needed.push(head.unconfirmed)
  if (head.end.kind === 'stopped') needed.push(head.end.savepoint)
  return new Set(needed.map((manifest) => manifest.path))
}
