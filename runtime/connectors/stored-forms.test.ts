import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createReader, createWriter } from '../record/bytes.ts'
import type { Codec } from '../record/contract.ts'
import { dataGenerator } from './datagen.ts'
import { fileEnumeratorCodec } from './file-enumerator.ts'
import { fileSplitCodec } from './file-format.ts'
import { pendingFileSchema } from './file-sink-names.ts'
import { jsonCodec } from './json-codec.ts'

const golden = JSON.parse(readFileSync(new URL('testdata/stored-forms-v1.json', import.meta.url), 'utf8')) as Record<
  string,
  unknown
>
const generator = dataGenerator({ create: (n) => n })

const forms: readonly [string, Codec<unknown>][] = [
  ['file split', fileSplitCodec],
  ['file enumerator', fileEnumeratorCodec],
  ['numbered split', generator.splitCodec],
  ['numbered enumerator', generator.enumeratorCodec],
]

describe('what checkpoints hold of connectors', () => {
  for (const [name, codec] of forms) {
    it(`reads and writes version 1 of the ${name}`, () => {
      const writer = createWriter()
      writer.string(JSON.stringify(golden[name]))
      const bytes = writer.take()
      const value = codec.decode(createReader(bytes))
      expect(value).toEqual(golden[name])
      writer.reset()
      codec.encode(value, writer)
      expect(createReader(writer.take()).string()).toBe(JSON.stringify(golden[name]))
      expect(codec.description).toEqual({ version: 1, kind: 'json', fingerprint: `${name}:1`, layout: name })
    })
  }

  it('reads version 1 of a file to be committed', () => {
    expect(pendingFileSchema.parse(golden['pending file'])).toEqual(golden['pending file'])
  })

  it('refuses a damaged split, and another version, by name', () => {
    const writer = createWriter()
    writer.string('{"path":"a"}')
    expect(() => fileSplitCodec.decode(createReader(writer.take()))).toThrow(/MR-N17.*file split/)
    const newer = jsonCodec('file split', 2, z.unknown())
    expect(fileSplitCodec.readerOf(newer.description)).toEqual({
      refused: expect.stringContaining('file split:2') as string,
    })
    expect(fileSplitCodec.readerOf(fileSplitCodec.description)).toEqual({ codec: fileSplitCodec })
  })
})
