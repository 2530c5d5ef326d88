import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chartFiles } from './chart-files.ts'
import { customResourceDefinitions } from './custom-resource-definitions.ts'
import { savepoint } from './savepoint.ts'
import { savepointStatus, streamJobStatus } from './status.ts'
import { streamJob } from './stream-job.ts'
import { structuralSchema } from './structural-schema.ts'
import type { StructuralSchema } from './structural-schema.ts'

interface Version {
  readonly schema: { readonly openAPIV3Schema: StructuralSchema }
  readonly subresources: unknown
  readonly additionalPrinterColumns: readonly { readonly name: string; readonly jsonPath: string }[]
}

function versionOf(kind: string): Version {
  const found = customResourceDefinitions().find(({ spec }) => (spec['names'] as { kind: string }).kind === kind)
  return (found!.spec['versions'] as Version[])[0]!
}

const fieldsOf = (kind: string): Readonly<Record<string, StructuralSchema>> =>
  versionOf(kind).schema.openAPIV3Schema.properties!

/** `spec.program.module.path`, `spec.list[].name`, … */
function pathsOf(schema: StructuralSchema, path: string): string[] {
  return [
    path,
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => pathsOf(inner, `${path}.${name}`)),
    ...(schema.items === undefined ? [] : pathsOf(schema.items, `${path}[]`)),
    ...(schema.additionalProperties === undefined ? [] : [`${path}.*`]),
  ]
}

/** The same of a zod schema, by its own parts. */
function pathsOfZod(schema: z.core.$ZodType, path: string): string[] {
  const def = (schema as z.ZodType).def as unknown as Record<string, unknown> & { type: string }
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return pathsOfZod(def['innerType'] as z.core.$ZodType, path)
    case 'pipe':
      return pathsOfZod(def['in'] as z.core.$ZodType, path)
    case 'object': {
      const shape = Object.entries(def['shape'] as Record<string, z.core.$ZodType>)
      return [path, ...shape.flatMap(([name, inner]) => pathsOfZod(inner, `${path}.${name}`))]
    }
    case 'union':
      return [...new Set((def['options'] as z.core.$ZodType[]).flatMap((option) => pathsOfZod(option, path)))]
    case 'array':
      return [path, ...pathsOfZod(def['element'] as z.core.$ZodType, `${path}[]`)]
    case 'record': {
      const isFree = (def['valueType'] as z.ZodType).def.type === 'unknown'
      return [path, ...(isFree ? [] : [`${path}.*`])]
    }
    default:
      return [path]
  }
}

function every(schema: StructuralSchema, check: (schema: StructuralSchema, path: string) => void, path = ''): void {
  check(schema, path)
  for (const [name, inner] of Object.entries(schema.properties ?? {})) every(inner, check, `${path}.${name}`)
  if (schema.items !== undefined) every(schema.items, check, `${path}[]`)
  if (schema.additionalProperties !== undefined) every(schema.additionalProperties, check, `${path}.*`)
}

describe('the definitions in the chart', () => {
  it.each(chartFiles())('$path is what crds/generate.ts writes', async ({ path, text }) => {
    expect(await readFile(new URL(`../${path}`, import.meta.url), 'utf8')).toBe(text)
  })

  it.each([
    ['StreamJob', streamJob.shape.spec, streamJobStatus],
    ['Savepoint', savepoint.shape.spec, savepointStatus],
  ] as const)('%s has every field of its schemas and no other', (kind, spec, status) => {
    const fields = fieldsOf(kind)
    for (const [name, schema] of Object.entries({ spec, status })) {
      const paths = pathsOf(fields[name]!, name)
      expect(paths.length).toBeGreaterThan(3)
      expect(paths.toSorted()).toEqual([...new Set(pathsOfZod(schema, name))].toSorted())
    }
  })

  it.each(['StreamJob', 'Savepoint'])(
    '%s is structural: each place has a type, or says that it may be anything',
    (kind) => {
      every(versionOf(kind).schema.openAPIV3Schema, (schema, path) => {
        const typed =
          schema['x-kubernetes-int-or-string'] ?? schema['x-kubernetes-preserve-unknown-fields'] ?? schema.type
        expect(typed, path).toBeDefined()
        expect(schema['x-kubernetes-int-or-string'] === true && schema.type !== undefined, path).toBe(false)
        expect(schema.properties !== undefined && schema.additionalProperties !== undefined, path).toBe(false)
        for (const name of ['anyOf', 'oneOf', 'allOf', '$ref', 'const', 'propertyNames'])
          expect(schema, path).not.toHaveProperty(name)
      })
    },
  )

  it('say what kubectl explain shows at every field of a spec but the plainest', () => {
    const bare: string[] = []
    for (const kind of ['StreamJob', 'Savepoint'])
      every(fieldsOf(kind)['spec']!, ({ description }, path) => {
        if (description === undefined) bare.push(path)
      })
    expect(bare).toEqual([
      '.storage.s3',
      '.storage.s3.region',
      '.restartStrategy.type',
      '.rollback.enabled',
      '.ingress.host',
      '.ingress.className',
      ...['coordinator', 'worker'].flatMap((pods) =>
        ['requests', 'limits'].flatMap((name) => [`.${pods}.resources.${name}`, `.${pods}.resources.${name}.*`]),
      ),
    ])
  })
})

describe('StreamJob', () => {
  const spec = fieldsOf('StreamJob')['spec']!.properties!

  it('has the defaults of its schema, durations as they are written', () => {
    expect(spec['parallelism']).toMatchObject({ type: 'integer', minimum: 1, default: 1 })
    expect(spec['state']).toMatchObject({ enum: ['running', 'suspended'], default: 'running' })
    expect(spec['rollback']).toMatchObject({ default: {} })
    expect(spec['rollback']!.properties!['progressDeadline']).toMatchObject({ type: 'string', default: '5m' })
    expect(spec['maxParallelism']).not.toHaveProperty('default')
    expect(spec['checkpointing']!.properties!['interval']).toMatchObject({ pattern: '^(\\d+)(ms|s|m|h|d)$' })
  })

  it('keeps what is free-form', () => {
    const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    expect(spec['program']!.properties!['args']).toMatchObject(free)
    expect(spec['worker']!.properties!['podTemplate']).toMatchObject(free)
    expect(spec['coordinator']!.properties!['podTemplate']).toMatchObject(free)
  })

  it('takes amounts and tolerable failures as numbers or texts', () => {
    const anyOfBoth = { 'x-kubernetes-int-or-string': true, minimum: 0 }
    expect(spec['checkpointing']!.properties!['tolerableFailures']).toMatchObject({
      ...anyOfBoth,
      pattern: '^unlimited$',
    })
    const { requests } = spec['worker']!.properties!['resources']!.properties!
    expect(requests!.additionalProperties).toMatchObject(anyOfBoth)
  })

  it('refuses by CEL what a schema cannot say', () => {
    const rules = (schema: StructuralSchema): string[] =>
      (schema['x-kubernetes-validations'] ?? []).map(({ rule }) => rule)
    expect(rules(fieldsOf('StreamJob')['spec']!)).toEqual([
      '!has(self.maxParallelism) || self.parallelism <= self.maxParallelism',
    ])
    expect(rules(spec['program']!.properties!['module']!)).toEqual(['has(self.configMap) != has(self.path)'])
    expect(rules(spec['restartStrategy']!)).toContain("self.type != 'fixed-delay' || has(self.attempts)")
    expect(rules(spec['restartStrategy']!)).toContain(
      "!has(self.delay) || self.type in ['fixed-delay', 'failure-rate']",
    )
    // Set here they would be set for every type.
    expect(spec['restartStrategy']!.properties!['delay']).not.toHaveProperty('default')
  })

  it('has no field whose engine part comes later', () => {
    const paths = pathsOf(fieldsOf('StreamJob')['spec']!, 'spec')
    for (const later of ['spec.checkpointing.unaligned', 'spec.checkpointing.alignedTimeout', 'spec.localRecovery'])
      expect(paths).not.toContain(later)
    expect(spec['stateBackend']!.properties!['type']!.enum).toEqual(['heap'])
    expect(spec['restoreMode']!.enum).toEqual(['no-claim'])
    expect(spec['failoverStrategy']!.enum).toEqual(['region', 'full'])
  })

  it('has the scale subresource, and columns for kubectl get', () => {
    const { subresources, additionalPrinterColumns } = versionOf('StreamJob')
    expect(subresources).toEqual({
      status: {},
      scale: {
        specReplicasPath: '.spec.parallelism',
        statusReplicasPath: '.status.parallelism',
        labelSelectorPath: '.status.labelSelector',
      },
    })
    expect(additionalPrinterColumns.slice(0, 5).map(({ name }) => name)).toEqual([
      'Phase',
      'Parallelism',
      'Last Checkpoint',
      'Restarts',
      'Age',
    ])
    const paths = [...pathsOf(fieldsOf('StreamJob')['status']!, '.status'), '.metadata.creationTimestamp']
    for (const { jsonPath } of additionalPrinterColumns) expect(paths).toContain(jsonPath.replace(/\[.*?\]/, '[]'))
  })
})

describe('Savepoint', () => {
  it('has all of its rules in CEL: no webhook is asked about it', () => {
    const { path, job } = fieldsOf('Savepoint')['spec']!.properties!
    expect(path!['x-kubernetes-validations']).toEqual([
      {
        rule: String.raw`self.matches('^(s3:[/][/][^/ ]+[/][^ ]+|(file:[/][/])?[/][^ ]+)$')`,
        message: 'must be the folder of a savepoint, such as s3://bucket/prefix/savepoint-7',
      },
    ])
    expect(path).toMatchObject({ maxLength: 2_048 })
    expect(job!['x-kubernetes-validations']).toHaveLength(1)
  })
})

describe('a schema that the structural form cannot say', () => {
  it.each([
    ['a number above zero', z.object({ share: z.number().positive() })],
    ['values of several types', z.object({ either: z.union([z.string(), z.boolean()]) })],
    [
      'a field that means two things',
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('a'), value: z.string() }),
        z.object({ type: z.literal('b'), value: z.int() }),
      ]),
    ],
    ['a tuple', z.object({ pair: z.tuple([z.string(), z.int()]) })],
  ])('is an error: %s', (_, schema) => {
    expect(() => structuralSchema(schema)).toThrow(/structural form|variants of a union|several types/)
  })
})
