import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, requestId, start } from '../base/ids.ts'
import { completeCheckpoint, newJob, raiseIncarnation, reserveIds } from './head.ts'
import type { Head, ManifestRef } from './head-contract.ts'
import { decodeHead, encodeHead } from './head-format.ts'
import { manifestKey } from './paths.ts'

const manifest = (id: number, kind: ManifestRef['kind'] = 'checkpoint'): ManifestRef => ({
  id: checkpointId(id),
  kind,
  path: manifestKey(checkpointId(id), kind),
  start: start(2),
  completedAtMs: 1_700_000_000_000 + id,
  bytes: 4096,
})

/** Every field used. */
const full: Head = {
  format: 1,
  job: jobId('default/flights'),
  writer: '00000000000000000000000000000001',
  incarnation: incarnation(5),
  start: start(2),
  restoredFrom: { kind: 'manifest', manifest: manifest(3, 'savepoint') },
  end: { kind: 'none' },
  retained: [manifest(7), manifest(9)],
  unconfirmed: manifest(9),
  discarding: [manifest(6)],
  pins: [{ manifest: manifest(3, 'savepoint'), reason: 'upgrade' }],
  reservedIds: 1000,
  parallelism: 2,
  maxParallelism: 128,
  restarts: 1,
  savepointRequests: [{ request: requestId('request-2'), mode: 'savepoint' }],
  savepointResults: [
    { request: requestId('request-1'), outcome: 'completed', manifest: manifest(3, 'savepoint'), detail: '' },
  ],
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const bytes = (value: string) => new TextEncoder().encode(value)

/** A document with a right checksum, whatever it says. */
function sealed(fields: Record<string, unknown>): Uint8Array {
  const blank = JSON.stringify({ crc32: '00000000', ...fields })
  return bytes(blank.replace('00000000', crc32(bytes(blank)).toString(16).padStart(8, '0')))
}

const fieldsOf = (head: Head): Record<string, unknown> => JSON.parse(JSON.stringify(head)) as Record<string, unknown>

describe('HEAD as bytes', () => {
  it('reads back as it was written', () => {
    expect(decodeHead(encodeHead(full), 'here')).toEqual(full)
    const plain = {
      ...newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 128 }),
      writer: 'w',
    }
    expect(decodeHead(encodeHead(plain), 'here')).toEqual(plain)
  })

  it('of a cancelled job reads back with the savepoint that it was stopped with, and without', () => {
    for (const end of [{ kind: 'cancelled' }, { kind: 'cancelled', savepoint: manifest(12, 'savepoint') }] as const)
      expect(decodeHead(encodeHead({ ...full, end }), 'here').end).toEqual(end)
    const damaged = sealed({ ...fieldsOf(full), end: { kind: 'cancelled', savepoint: { id: 12 } } })
    expect(() => decodeHead(damaged, 'here')).toThrow(/MR-S10 .*end\.savepoint/)
  })

  it('of format 1 stays readable for ever, and is still written so', async () => {
    const golden = await readFile(new URL('testdata/head-format-1.txt', import.meta.url))
    expect(decodeHead(golden, 'golden file')).toEqual(full)
    expect(decodeHead(golden, 'reading changes nothing')).toEqual(full)
    expect(text(encodeHead(full))).toBe(golden.toString())
  })

  it('keeps fields of later versions through a transition', () => {
    const fields = fieldsOf(full)
    const later = sealed({
      ...fields,
      region: { name: 'x' },
      retained: [{ ...manifest(7), shards: 3 }, manifest(9)],
      pins: [{ ...full.pins[0], until: 5 }],
    })
    const rewritten = encodeHead(
      completeCheckpoint(raiseIncarnation(decodeHead(later, 'here')), {
        manifest: manifest(10),
        retainedMax: 3,
        commitsPending: false,
      }),
    )
    expect(JSON.parse(text(rewritten))).toMatchObject({
      region: { name: 'x' },
      retained: [{ shards: 3 }, {}, {}],
      pins: [{ until: 5 }],
      incarnation: 6,
    })
  })

  it('with any flipped bit is an error, never absent', () => {
    const good = encodeHead(full)
    for (let index = 0; index < good.length; index += 7) {
      const bad = good.slice()
      bad[index]! ^= 1 << (index % 8)
      expect(() => decodeHead(bad, 'here')).toThrow(/^MR-S1[01] /)
    }
  })

  it('cut anywhere is an error', () => {
    const good = encodeHead(full)
    for (let length = 0; length < good.length; length += 13)
      expect(() => decodeHead(good.slice(0, length), 'here')).toThrow(/MR-S10/)
  })

  it.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(0), /MR-S10 .*no JSON/],
    ['a list', bytes('[]'), /MR-S10 .*not a JSON object/],
    ['no version', sealed({ job: 'x' }), /MR-S10 .*no format version/],
    ['a later format', sealed({ ...fieldsOf(full), format: 3 }), /MR-S11 .*format 3; read here: 1/],
    ['a format from before the first', sealed({ ...fieldsOf(full), format: 0 }), /MR-S11/],
    ['a wrong type', sealed({ ...fieldsOf(full), incarnation: '5' }), /MR-S10 .*field incarnation/],
    ['a missing field', sealed({ ...fieldsOf(full), pins: undefined }), /MR-S10 .*field pins/],
    ['an end that nobody knows', sealed({ ...fieldsOf(full), end: { kind: 'paused' } }), /MR-S10 .*field end/],
    ['ids out of order', sealed({ ...fieldsOf(full), retained: [manifest(9), manifest(7)] }), /MR-S10 .*rising order/],
    ['an id beyond the reserved', sealed({ ...fieldsOf(full), reservedIds: 8 }), /MR-S10 .*beyond the reserved/],
    [
      'a needed manifest in discarding',
      sealed({ ...fieldsOf(full), discarding: [manifest(9)] }),
      /MR-S10 .*both needed and to be discarded/,
    ],
  ])('with %s says what is wrong and where', (_, document, complaint) => {
    expect(() => decodeHead(document, 'HEAD at 17')).toThrow(complaint)
    expect(() => decodeHead(document, 'HEAD at 17')).toThrow(/HEAD at 17/)
  })

  it('is not written when it could not be read', () => {
    expect(() => encodeHead({ ...full, writer: '' })).toThrow(/no writer/)
    expect(() => encodeHead({ ...full, discarding: [manifest(7)] })).toThrow(/both needed/)
    expect(() => encodeHead({ ...reserveIds(full, 1).head, retained: [manifest(2000)] })).toThrow(/beyond the reserved/)
  })
})
