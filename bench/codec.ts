// What encoding and decoding cost per record: our three codecs against JSON in the same run. One batch is about one frame.
// The peer figure is JSON's for the same records; ratio = JSON's time over ours. Few records stay in the processor's cache, as
// in a running pipeline; many come from memory, which costs every codec the same and so pulls the ratios down.

import { createReader, createWriter } from '../runtime/record/bytes.ts'
import type { ByteWriter, TypeInfo } from '../runtime/record/contract.ts'
import { keyGroupOf } from '../runtime/record/key-group.ts'
import { typeInfoOf } from '../runtime/record/type-info.ts'
import { bid } from './bid.ts'
import type { Bid } from './bid.ts'
import type { Figure } from './figure.ts'

const CASES = [
  { label: 'in cache', recordCount: 2000, rounds: 150 },
  { label: 'from memory', recordCount: 20_000, rounds: 20 },
] as const
const BATCH_RECORDS = 200
/** Share of the rounds that only let the compiler settle. */
const WARM_UP = 1 / 3

interface Contender {
  readonly name: string
  /** Encodes all records into one Uint8Array per batch. */
  encode(): Uint8Array[]
  /** Decodes them; the number of records. */
  decode(batches: readonly Uint8Array[]): number
}

export async function run(emit: (figure: Figure) => void): Promise<void> {
  for (const { label, recordCount, rounds } of CASES) runCodecs(emit, label, makeRecords(recordCount), rounds)
  const texts = makeRecords(2000).map((record) => record.channel)
  const numbers = texts.map((_, index) => index * 7)
  emit({ bench: 'codec', case: 'number key', metric: 'key group', value: keyGroupNs(numbers), unit: 'ns/key' })
  emit({ bench: 'codec', case: 'string key', metric: 'key group', value: keyGroupNs(texts), unit: 'ns/key' })
}

function runCodecs(emit: (figure: Figure) => void, label: string, records: readonly Bid[], rounds: number): void {
  const typed = typeInfoOf('bid', bid)
  const untyped = typeInfoOf<Bid>('bid')
  const contenders = [
    jsonContender(records),
    batchContender('columnar', typed, records),
    rowContender('row', typed, records),
    batchContender('untyped', untyped, records),
  ]
  const results = contenders.map(() => ({ encodeNs: Infinity, decodeNs: Infinity, bytes: 0 }))
  for (let round = 0; round < rounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      const result = results[index]!
      const began = performance.now()
      const batches = contender.encode()
      const encoded = performance.now()
      const count = contender.decode(batches)
      const decoded = performance.now()
      if (count !== records.length) throw new Error(`${contender.name} lost records: ${count}`)
      if (round < rounds * WARM_UP) continue
      result.encodeNs = Math.min(result.encodeNs, ((encoded - began) * 1e6) / count)
      result.decodeNs = Math.min(result.decodeNs, ((decoded - encoded) * 1e6) / count)
      result.bytes = batches.reduce((sum, batch) => sum + batch.length, 0) / count
    }
  }
  const json = results[0]!
  for (const [index, { name }] of contenders.entries()) {
    const { encodeNs, decodeNs, bytes } = results[index]!
    const place = `${name}, ${label}`
    emit(figure(place, 'encode', encodeNs, 'ns/record', json.encodeNs))
    emit(figure(place, 'decode', decodeNs, 'ns/record', json.decodeNs))
    emit(figure(place, 'encode+decode', encodeNs + decodeNs, 'ns/record', json.encodeNs + json.decodeNs))
    emit(figure(place, 'size', bytes, 'bytes/record', json.bytes))
  }
}

function figure(name: string, metric: string, value: number, unit: string, json: number): Figure {
  return { bench: 'codec', case: name, metric, value, unit, peer: 'JSON', peerValue: json, ratio: json / value }
}

function jsonContender(records: readonly Bid[]): Contender {
  return {
    name: 'JSON',
    encode: () => inBatches(records.length, (from, to) => Buffer.from(JSON.stringify(records.slice(from, to)))),
    decode: (batches) => {
      let count = 0
      for (const batch of batches)
        count += (JSON.parse(Buffer.from(batch.buffer, batch.byteOffset, batch.length).toString()) as Bid[]).length
      return count
    },
  }
}

function batchContender(name: string, type: TypeInfo<Bid>, records: readonly Bid[]): Contender {
  const timestamps = records.map((record) => record.dateTime)
  return {
    name,
    encode: () =>
      intoWriter(records.length, (from, to, writer) => type.batch.encodeBatch(records, timestamps, from, to, writer)),
    decode: (batches) => {
      let count = 0
      for (const batch of batches) count += type.batch.decodeBatch(createReader(batch)).values.length
      return count
    },
  }
}

function rowContender(name: string, type: TypeInfo<Bid>, records: readonly Bid[]): Contender {
  return {
    name,
    encode: () =>
      intoWriter(records.length, (from, to, writer) => {
        for (let index = from; index < to; index++) type.row.encode(records[index]!, writer)
      }),
    decode: (batches) => {
      let last: Bid | undefined
      let count = 0
      for (const batch of batches) {
        const reader = createReader(batch)
        for (; reader.position < reader.end; count++) last = type.row.decode(reader)
      }
      return last === undefined ? 0 : count
    },
  }
}

function inBatches(recordCount: number, encode: (from: number, to: number) => Uint8Array): Uint8Array[] {
  const batches: Uint8Array[] = []
  for (let from = 0; from < recordCount; from += BATCH_RECORDS)
    batches.push(encode(from, Math.min(recordCount, from + BATCH_RECORDS)))
  return batches
}

function intoWriter(recordCount: number, encode: (from: number, to: number, writer: ByteWriter) => void): Uint8Array[] {
  const writer = createWriter(32_768)
  return inBatches(recordCount, (from, to) => {
    writer.reset()
    encode(from, to, writer)
    return writer.take()
  })
}

function keyGroupNs(keys: readonly (string | number)[]): number {
  let best = Infinity
  let sum = 0
  for (let round = 0; round < 100; round++) {
    const began = performance.now()
    for (const key of keys) sum += keyGroupOf(key, 128)
    best = Math.min(best, ((performance.now() - began) * 1e6) / keys.length)
  }
  if (sum < 0) throw new Error('key groups are not negative')
  return best
}

/** Bids as Nexmark has them, about 150 bytes each; the same on every run. */
function makeRecords(recordCount: number): Bid[] {
  let seed = 12_345
  const random = (limit: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed % limit
  }
  const letters = (count: number): string => {
    let text = ''
    for (let index = 0; index < count; index++) text += String.fromCharCode(97 + random(26))
    return text
  }
  const channels = ['Apple', 'Google', 'Facebook', 'Baidu']
  return Array.from({ length: recordCount }, (_, index) => ({
    auction: 1000 + random(10_000),
    bidder: 1000 + random(5000),
    price: random(10_000_000),
    dateTime: 1_730_000_000_000 + index * 3,
    channel: random(2) === 0 ? `channel-${random(10_000)}` : channels[random(4)]!,
    url: `https://www.nexmark.example/${letters(6)}/item.htm?query=1&channel_id=${random(1_000_000_000)}`,
    extra: letters(20 + random(60)),
  }))
}
