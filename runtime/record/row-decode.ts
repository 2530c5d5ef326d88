// Code that reads one value of a stored layout, as a value of today's layout. Both are the same tree unless the schema
// changed; evolution.ts has checked before that stored values can become today's.

import { unreachable } from '../base/errors.ts'
import * as support from './code-support.ts'
import type { ByteReader } from './contract.ts'
import { matchingOption, type FallbackOf } from './evolution.ts'
import { choiceValue, minimumBytes, type FieldLayout, type Layout, type LayoutOf } from './layout.ts'
import { SourceWriter } from './source-writer.ts'
import { readUntyped } from './untyped.ts'

/** The returned function throws MR-R01 for damaged bytes. */
export function compileDecoder(stored: Layout, today: Layout, fallbackOf: FallbackOf): (reader: ByteReader) => unknown {
  const source = new SourceWriter()
  const code = new DecoderCode(source, fallbackOf)
  source.line(`return ${code.value(stored, today, '')}`)
  return source.compile('decode', ['r']) as (reader: ByteReader) => unknown
}

class DecoderCode {
  readonly #source: SourceWriter
  readonly #fallbackOf: FallbackOf
  readonly #malformed: string
  readonly #number: string
  readonly #integer: string
  readonly #bigint: string
  readonly #bytes: string
  readonly #untyped: string
  readonly #count: string
  readonly #set: string

  constructor(source: SourceWriter, fallbackOf: FallbackOf) {
    this.#source = source
    this.#fallbackOf = fallbackOf
    this.#malformed = source.constant(support.malformed)
    this.#number = source.constant(support.readNumber)
    this.#integer = source.constant(support.readInteger)
    this.#bigint = source.constant(support.readBigint)
    this.#bytes = source.constant(support.readBytes)
    this.#untyped = source.constant(readUntyped)
    this.#count = source.constant(support.readCount)
    this.#set = source.constant(support.setField)
  }

  /** Reads a stored value into a variable and gives its name. `today` undefined: the value is read and dropped. */
  value(stored: Layout, today: Layout | undefined, path: string): string {
    // A value that became nullable or optional is still itself.
    if ((today?.kind === 'nullable' || today?.kind === 'optional') && stored.kind !== today.kind) {
      return this.value(stored, today.inner, path)
    }
    switch (stored.kind) {
      case 'string':
        return this.#read('r.string()')
      case 'number':
        return this.#read(`${this.#number}(r)`)
      case 'int':
        return this.#read(`${this.#integer}(r)`)
      case 'bigint':
        return this.#read(`${this.#bigint}(r)`)
      case 'boolean': {
        const byte = this.#read('r.u8()')
        this.#require(`${byte} <= 1`, path, 'is no boolean')
        return this.#read(`${byte} === 1`)
      }
      case 'date':
        return this.#read(`new Date(${this.#number}(r))`)
      case 'bytes':
        return this.#read(`${this.#bytes}(r)`)
      case 'untyped':
        return this.#read(`${this.#untyped}(r)`)
      case 'choice':
        return this.#choice(stored, path)
      case 'nullable':
      case 'optional': {
        const inner = today?.kind === stored.kind ? today.inner : undefined
        const result = this.#declare(stored.kind === 'nullable' ? 'null' : 'undefined')
        const flag = this.#read('r.u8()')
        this.#require(`${flag} <= 1`, path, 'says neither that it is there nor that it is not')
        this.#line(`if (${flag} === 1) {`)
        this.#line(`${result} = ${this.value(stored.inner, inner, path)}`)
        this.#line('}')
        return result
      }
      case 'array':
      case 'set': {
        const result = this.#read(stored.kind === 'array' ? '[]' : 'new Set()')
        const add = stored.kind === 'array' ? 'push' : 'add'
        const item = today?.kind === stored.kind ? today.item : undefined
        this.#repeat(path, () => this.#line(`${result}.${add}(${this.#element(stored.item, item, `${path}[]`)})`))
        return result
      }
      case 'map': {
        const result = this.#read('new Map()')
        const map = today?.kind === 'map' ? today : undefined
        this.#repeat(path, () => {
          const key = this.#element(stored.key, map?.key, `${path}{key}`)
          this.#line(`${result}.set(${key}, ${this.value(stored.value, map?.value, `${path}{}`)})`)
        })
        return result
      }
      case 'record': {
        const result = this.#read('{}')
        this.#named(stored.value, today?.kind === 'record' ? today.value : undefined, result, `${path}{}`)
        return result
      }
      case 'tuple':
        return this.#tuple(stored, today?.kind === 'tuple' ? today : undefined, path)
      case 'object':
        return this.#object(stored, today?.kind === 'object' ? today : undefined, path)
      case 'union':
        return this.#union(stored, today?.kind === 'union' ? today : undefined, path)
      default:
        return unreachable(stored)
    }
  }

  #choice(stored: LayoutOf<'choice'>, path: string): string {
    const values = stored.values.map(choiceValue)
    if (values.length === 1) return this.#read(this.#source.constant(values[0]))
    const index = this.#read('r.varint()')
    this.#require(`${index} < ${values.length}`, path, 'has an index out of range')
    return this.#read(`${this.#source.constant(values)}[${index}]`)
  }

  #tuple(stored: LayoutOf<'tuple'>, today: LayoutOf<'tuple'> | undefined, path: string): string {
    const count = stored.items.length
    const length = this.#read('r.varint()')
    if (stored.rest === null) this.#require(`${length} <= ${count}`, path, 'has too many elements')
    const items = stored.items.map((item, index) => this.value(item, today?.items[index], `${path}[${index}]`))
    const result = this.#read(`[${items.join(', ')}]`)
    this.#line(`if (${length} < ${count}) ${result}.length = ${length}`)
    if (stored.rest !== null) {
      const { rest } = stored
      this.#line(`if (${length} > ${count}) {`)
      this.#repeat(path, () =>
        this.#line(`${result}.push(${this.#element(rest, today?.rest ?? undefined, `${path}[]`)})`),
      )
      this.#line('}')
    }
    return result
  }

  #object(stored: LayoutOf<'object'>, today: LayoutOf<'object'> | undefined, path: string): string {
    const held = new Map<string, { readonly variable: string; readonly flag: string | undefined }>()
    for (const field of stored.fields) {
      const target = today?.fields.find((candidate) => candidate.name === field.name)
      held.set(field.name, this.#field(field, target?.layout, path === '' ? field.name : `${path}.${field.name}`))
    }
    const result = this.#source.name('o')
    this.#build(result, today, held)
    if (stored.rest !== null) {
      const keeps = today?.rest ?? undefined
      this.#named(stored.rest, keeps, keeps === undefined ? undefined : result, path === '' ? '*' : `${path}.*`)
    }
    return result
  }

  #field(field: FieldLayout, target: Layout | undefined, path: string): { variable: string; flag: string | undefined } {
    if (!field.optional) return { variable: this.value(field.layout, target, path), flag: undefined }
    const flag = this.#read('r.u8()')
    this.#require(`${flag} <= 2`, path, 'says neither that it is there nor that it is not')
    const variable = this.#declare('undefined')
    this.#line(`if (${flag} === 1) {`)
    this.#line(`${variable} = ${this.value(field.layout, target, path)}`)
    this.#line('}')
    return { variable, flag }
  }

  /** Today's object in today's order of fields: a literal up to the first field that may be missing, assignments after it. */
  #build(
    result: string,
    today: LayoutOf<'object'> | undefined,
    held: ReadonlyMap<string, { readonly variable: string; readonly flag: string | undefined }>,
  ): void {
    const literal: string[] = []
    const assignments: string[] = []
    for (const field of today?.fields ?? []) {
      const source = held.get(field.name)
      const name = JSON.stringify(field.name)
      if (source === undefined && field.optional) continue
      let expression = source?.variable
      if (!field.optional && (source === undefined || source.flag !== undefined)) {
        const fallback = `${this.#source.constant(this.#fallbackOf(field))}()`
        expression = source === undefined ? fallback : `${source.flag} === 1 ? ${source.variable} : ${fallback}`
      }
      const mayMiss = field.optional && source?.flag !== undefined
      if (mayMiss) assignments.push(`if (${source.flag} !== 0) ${result}[${name}] = ${expression}`)
      else if (assignments.length > 0) assignments.push(`${result}[${name}] = ${expression}`)
      else literal.push(`${name}: ${expression}`)
    }
    this.#line(`const ${result} = { ${literal.join(', ')} }`)
    for (const assignment of assignments) this.#line(assignment)
  }

  #union(stored: LayoutOf<'union'>, today: LayoutOf<'union'> | undefined, path: string): string {
    const result = this.#declare('undefined')
    const option = this.#read('r.varint()')
    this.#line(`switch (${option}) {`)
    for (const [index, inner] of stored.options.entries()) {
      const target = today === undefined ? undefined : matchingOption(stored, today, index)
      this.#line(`case ${index}: {`)
      this.#line(`${result} = ${this.value(inner, target, path)}`)
      this.#line('break }')
    }
    this.#line(`default: throw ${this.#malformed}(${JSON.stringify(path)}, 'has an option out of range')`)
    this.#line('}')
    return result
  }

  /** Names and values, set on the variable `result`, or dropped. */
  #named(stored: Layout, today: Layout | undefined, result: string | undefined, path: string): void {
    this.#repeat(path, () => {
      const name = this.#read('r.string()')
      const held = this.value(stored, today, path)
      if (result !== undefined) this.#line(`${this.#set}(${result}, ${name}, ${held})`)
    })
  }

  #repeat(path: string, body: () => void): void {
    const count = this.#read(`${this.#count}(r, ${JSON.stringify(path)})`)
    const index = this.#source.name('i')
    this.#line(`for (let ${index} = 0; ${index} < ${count}; ${index}++) {`)
    body()
    this.#line('}')
  }

  #element(stored: Layout, today: Layout | undefined, path: string): string {
    if (minimumBytes(stored) === 0) this.#line('r.u8()')
    return this.value(stored, today, path)
  }

  #read(expression: string): string {
    const name = this.#source.name('v')
    this.#line(`const ${name} = ${expression}`)
    return name
  }

  #declare(initial: string): string {
    const name = this.#source.name('v')
    this.#line(`let ${name} = ${initial}`)
    return name
  }

  #require(condition: string, path: string, problem: string): void {
    this.#line(`if (!(${condition})) throw ${this.#malformed}(${JSON.stringify(path)}, ${JSON.stringify(problem)})`)
  }

  #line(text: string): void {
    this.#source.line(text)
  }
}
