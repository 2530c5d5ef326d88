// From a zod schema to the schema of a CustomResourceDefinition: OpenAPI v3 in the structural form that the API server demands. Nothing is
// dropped without a word: whatever has no place there is an error.

import { z } from 'zod'

/** apiextensions.k8s.io/v1 JSONSchemaProps, as far as it is used. */
export interface StructuralSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description?: string
  readonly format?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: StructuralSchema
  readonly properties?: Readonly<Record<string, StructuralSchema>>
  readonly additionalProperties?: StructuralSchema
  readonly required?: readonly string[]
  readonly 'x-kubernetes-preserve-unknown-fields'?: true
  readonly 'x-kubernetes-int-or-string'?: true
  readonly 'x-kubernetes-list-type'?: 'map' | 'atomic'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

export interface CelRule {
  readonly rule: string
  readonly message: string
}

type JsonSchema = Readonly<Record<string, unknown>>

/** Taken over as they are. */
const kept = [
  'description',
  'default',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
] as const

/** Looked at below. `additionalProperties: false` says that unknown fields are refused, which the API server does for all. */
const read = ['$schema', 'type', 'const', 'properties', 'required', 'additionalProperties', 'propertyNames', 'items']
const readNumbers = ['minimum', 'maximum', 'exclusiveMinimum']
const readUnions = ['anyOf', 'oneOf']
const known: readonly string[] = [...kept, ...read, ...readNumbers, ...readUnions]

/** As the value is written: durations are texts. Throws where the schema says something that a CustomResourceDefinition cannot. */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  return structural(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), '')
}

function structural(schema: JsonSchema, path: string): StructuralSchema {
  const strange = Object.keys(schema).find((name) => !known.includes(name))
  if (strange !== undefined) throw new Error(`${path}: the structural form does not know ${strange}`)
  const said: StructuralSchema = Object.fromEntries(
    kept.flatMap((name) => (name in schema ? [[name, schema[name]]] : [])),
  )
  if (schema['x-kubernetes-int-or-string'] === true) return { ...said, ...bounds(schema) }
  const variants = (schema['oneOf'] ?? schema['anyOf']) as readonly JsonSchema[] | undefined
  if (variants !== undefined) return { ...said, ...oneOfObjects(variants, path) }
  switch (schema['type']) {
    case undefined:
      return { ...said, 'x-kubernetes-preserve-unknown-fields': true }
    case 'object':
      return { ...said, type: 'object', ...objectParts(schema, path) }
    case 'array':
      return { ...said, type: 'array', items: structural(schema['items'] as JsonSchema, `${path}[]`) }
    case 'integer':
      return { ...said, type: 'integer', format: 'int64', ...bounds(schema) }
    case 'number':
      // A literal 1 is a number in JSON's schema.
      return Number.isInteger(schema['const'])
        ? { ...said, type: 'integer', format: 'int64', enum: [schema['const']] }
        : { ...said, type: 'number', ...bounds(schema) }
    case 'string':
      return { ...said, type: 'string', ...('const' in schema && { enum: [schema['const']] }) }
    case 'boolean':
      return { ...said, type: 'boolean' }
    default:
      throw new Error(`${path}: the structural form does not know the type ${JSON.stringify(schema['type'])}`)
  }
}

function objectParts(schema: JsonSchema, path: string): Partial<StructuralSchema> {
  const { properties, required, additionalProperties } = schema as {
    properties?: Readonly<Record<string, JsonSchema>>
    required?: readonly string[]
    additionalProperties?: JsonSchema | false
  }
  if (properties === undefined) {
    if (additionalProperties === undefined || additionalProperties === false) return {}
    const free = Object.keys(additionalProperties).length === 0
    return free
      ? { 'x-kubernetes-preserve-unknown-fields': true }
      : { additionalProperties: structural(additionalProperties, `${path}.*`) }
  }
  const inner = Object.entries(properties).map(([name, value]) => [name, structural(value, `${path}.${name}`)] as const)
  return {
    properties: Object.fromEntries(inner),
    ...(required !== undefined && required.length > 0 && { required }),
  }
}

/** The bounds of what JavaScript counts exactly say nothing to anybody. */
function bounds(schema: JsonSchema): Partial<StructuralSchema> {
  const { minimum, maximum, exclusiveMinimum } = schema as Readonly<Record<string, number | undefined>>
  if (exclusiveMinimum !== undefined) throw new Error('the structural form has no exclusiveMinimum here')
  return {
    ...(minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && { maximum }),
  }
}

/**
 * Objects told apart by the field `type`: one object with the fields of all, and rules in CEL that say which belong to which. Their defaults
 * stay with whoever reads the object: here they would be set for every type.
 */
function oneOfObjects(variants: readonly JsonSchema[], path: string): StructuralSchema {
  const fields: Record<string, StructuralSchema> = {}
  const typesOf: Record<string, string[]> = {}
  const rules: CelRule[] = []
  const types = variants.map((variant) => {
    const { properties = {}, required = [] } = structural(variant, path)
    const type = properties['type']?.enum?.[0]
    if (typeof type !== 'string') throw new Error(`${path}: the variants of a union must be told apart by type`)
    for (const [name, { default: _, ...field }] of Object.entries(properties)) {
      if (name === 'type') continue
      if (fields[name] !== undefined && fields[name].type !== field.type)
        throw new Error(`${path}.${name} is of several types`)
      fields[name] ??= field
      ;(typesOf[name] ??= []).push(type)
    }
    for (const name of required.filter((name) => name !== 'type'))
      rules.push({
        rule: `self.type != '${type}' || has(self.${name})`,
        message: `${name} is missing, which ${type} needs`,
      })
    return type
  })
  for (const [name, owners] of Object.entries(typesOf)) {
    const list = owners.map((type) => `'${type}'`).join(', ')
    rules.push({
      rule: `!has(self.${name}) || self.type in [${list}]`,
      message: `${name} belongs to ${owners.join(' and ')} only`,
    })
  }
  return {
    type: 'object',
    properties: { type: { type: 'string', enum: types }, ...fields },
    required: ['type'],
    'x-kubernetes-validations': rules,
  }
}
