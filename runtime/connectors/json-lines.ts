// JSON lines: one JSON value a line; empty lines are passed over.

import type { ZodType } from 'zod'
import { messageOf } from './errors.ts'
import { MalformedRecord, type FileFormat, type RecordRun, type SplitCursor } from './file-format.ts'
import { fileSource, type FileSource, type FileSourceOptions } from './file-source.ts'
import { LINE_FEED, LineRecords, textStart, type ChunkOfRecords } from './line-records.ts'
import { validatorOf, type RecordValidator } from './record-schema.ts'

/** Records of JSON-lines files (UTF-8), validated by the schema. A file is one split. */
export function jsonLineFiles<T>(options: FileSourceOptions<T>): FileSource<T> {
  return fileSource(options, jsonLinesFormat(options.schema))
}

function jsonLinesFormat<T>(schema: ZodType<T>): FileFormat<T> {
  return {
    name: 'JSON lines',
    countSplits: () => Promise.resolve(1),
    open(files, split) {
      const validator = validatorOf(schema)
      let records: LineRecords | undefined
      return {
        async next() {
          records ??= new LineRecords(
            files,
            split,
            split.offset === 0 ? await textStart(files, split) : split.offset,
            findLineEnd,
          )
          for (;;) {
            const chunk = await records.next()
            if (chunk === undefined) return undefined
            const run = runOf(chunk, validator)
            if (run.count > 0) return run
          }
        },
      } satisfies SplitCursor<T>
    },
  }
}

function findLineEnd(bytes: Uint8Array, start: number): number {
  return bytes.indexOf(LINE_FEED, start)
}

function runOf<T>(chunk: ChunkOfRecords, validator: RecordValidator<T>): RecordRun<T> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const filled: number[] = []
  for (let line = 0; line < chunk.starts.length; line++) {
    if (!isBlank(chunk.bytes, chunk.starts[line]!, chunk.ends[line]!)) filled.push(line)
  }
  return {
    count: filled.length,
    read(index) {
      const line = filled[index]!
      const bytes = chunk.bytes.subarray(chunk.starts[line], chunk.ends[line])
      let raw: unknown
      try {
        raw = JSON.parse(decoder.decode(bytes))
      } catch (error) {
        return new MalformedRecord(messageOf(error), lossyText(bytes))
      }
      return validator.accept(raw) ?? new MalformedRecord(validator.problem, lossyText(bytes))
    },
    offsetAfter: (index) => chunk.offsetsAfter[filled[index]!]!,
  }
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let index = start; index < end; index++) {
    if (bytes[index] !== 0x20 && bytes[index] !== 0x09) return false
  }
  return true
}

/** For people: broken UTF-8 shows as replacement characters. */
export function lossyText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
