import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { fingerprintOf, parseLayout } from './layout.ts'
import { layoutOfSchema } from './schema-layout.ts'

const layout = (schema: ZodType): unknown => layoutOfSchema(schema).layout
const fingerprint = (schema: ZodType): string => fingerprintOf(layoutOfSchema(schema).layout)

describe('layouts', () => {
  it('say how the values of a schema lie in bytes', () => {
    expect(layout(z.email().min(3))).toEqual({ kind: 'string' })
    expect(layout(z.number().positive())).toEqual({ kind: 'number' })
    for (const integer of [z.int(), z.int32(), z.uint32(), z.number().int(), z.coerce.number().int()]) {
      expect(layout(integer)).toEqual({ kind: 'int' })
    }
    expect(layout(z.int64())).toEqual({ kind: 'bigint' })
    expect(layout(z.iso.datetime())).toEqual({ kind: 'string' })
    expect(layout(z.unknown())).toEqual({ kind: 'untyped' })
    expect(layout(z.null())).toEqual({ kind: 'choice', values: [null] })
    expect(layout(z.literal([1, 2n, undefined]))).toEqual({
      kind: 'choice',
      values: [1, { bigint: '2' }, { undefined: true }],
    })
    expect(layout(z.enum({ Up: 0, Down: 1, 0: 'Up', 1: 'Down' }))).toEqual({ kind: 'choice', values: [0, 1] })
    expect(layout(z.union([z.string(), z.union([z.int(), z.null()])]))).toEqual({
      kind: 'union',
      options: [{ kind: 'string' }, { kind: 'int' }, { kind: 'choice', values: [null] }],
    })
  })

  it('describe what flows after validation: output of pipes, no defaults, no optional under a default', () => {
    expect(layout(z.string().default('x'))).toEqual({ kind: 'string' })
    expect(layout(z.string().optional().default('x'))).toEqual({ kind: 'string' })
    expect(layout(z.nonoptional(z.string().optional()))).toEqual({ kind: 'string' })
    expect(layout(z.int().catch(0).readonly().brand('Count'))).toEqual({ kind: 'int' })
    expect(layout(z.string().transform(Number).pipe(z.number()))).toEqual({ kind: 'number' })
    expect(layout(z.stringbool())).toEqual({ kind: 'boolean' })
    expect(layout(z.object({ a: z.int().optional(), b: z.int().default(1) }))).toEqual({
      kind: 'object',
      fields: [
        { name: 'a', optional: true, layout: { kind: 'int' } },
        { name: 'b', optional: false, layout: { kind: 'int' } },
      ],
      rest: null,
    })
  })

  it('keep the unlisted fields of loose objects only', () => {
    expect(layout(z.strictObject({}))).toEqual({ kind: 'object', fields: [], rest: null })
    expect(layout(z.looseObject({}))).toEqual({ kind: 'object', fields: [], rest: { kind: 'untyped' } })
    expect(layout(z.object({}).catchall(z.int()))).toEqual({ kind: 'object', fields: [], rest: { kind: 'int' } })
  })

  it('refuse what has no binary form, naming the field', () => {
    const inField = (schema: ZodType): ZodType => z.object({ list: z.array(z.object({ inner: schema })) })
    interface Tree {
      readonly children: readonly Tree[]
    }
    const tree: ZodType<Tree> = z.object({
      get children() {
        return z.array(tree)
      },
    })
    const refused = [
      z.symbol(),
      z.never(),
      z.file(),
      z.custom<string>(),
      z.instanceof(URL),
      z.promise(z.string()),
      z.string().transform((text) => text.length),
      z.intersection(z.object({}), z.object({})),
      z.lazy(() => z.symbol()),
      tree,
      z.json(),
    ]
    for (const schema of refused) {
      expect(() => layout(inField(schema)), schema.type).toThrow(/^MR-R02 .*Field list\[\]\.inner/)
    }
    expect(() => layout(z.symbol())).toThrow('The schema itself is z.symbol()')
  })

  it('survive being stored as JSON', () => {
    const original = layoutOfSchema(
      z.object({ a: z.tuple([z.int()], z.string()), b: z.map(z.string(), z.set(z.date())), c: z.literal([1n, null]) }),
    ).layout
    const stored = parseLayout(JSON.parse(JSON.stringify(original)))
    expect(stored).toEqual(original)
    expect(fingerprintOf(stored)).toBe(fingerprintOf(original))
  })

  it('are refused when they are not of this version', () => {
    for (const wrong of [null, {}, { kind: 'decimal' }, { kind: 'array' }, { kind: 'string', more: 1 }]) {
      expect(() => parseLayout(wrong)).toThrow('MR-R01')
    }
  })
})

describe('fingerprints', () => {
  const base = z.object({ a: z.string(), b: z.int().optional() })

  it('stay when only checks, defaults or the way of writing change', () => {
    for (const same of [
      z.object({ a: z.email().max(10), b: z.int32().optional() }),
      z.strictObject({ a: z.string().default('x'), b: z.number().int().positive().optional() }),
      z.object({ a: z.string().describe('text'), b: z.int().optional() }).readonly(),
    ]) {
      expect(fingerprint(same)).toBe(fingerprint(base))
    }
  })

  it('change when the bytes change', () => {
    const others = [
      z.object({ a: z.string(), b: z.int() }),
      z.object({ b: z.int().optional(), a: z.string() }),
      z.object({ a: z.string(), c: z.int().optional() }),
      z.object({ a: z.string(), b: z.number().optional() }),
      z.object({ a: z.string() }),
      z.looseObject({ a: z.string(), b: z.int().optional() }),
      z.object({ a: z.string().nullable(), b: z.int().optional() }),
    ]
    const prints = new Set([base, ...others].map(fingerprint))
    expect(prints.size).toBe(others.length + 1)
    for (const print of prints) expect(print).toMatch(/^[0-9a-f]{16}$/)
  })
})
