// Code that writes one value of a layout. Each value is checked on its way: a value that does not fit its schema would
// otherwise be found by whoever reads it, far from the operator that emitted it.

import { unreachable } from '../base/errors.ts'
import * as support from './code-support.ts'
import type { ByteWriter } from './contract.ts'
import { choiceValue, minimumBytes, type Layout, type LayoutOf } from './layout.ts'
import { optionChooser } from './layout-fit.ts'
import { fieldRead, fieldTest, SourceWriter } from './source-writer.ts'
import { writeUntyped } from './untyped.ts'

/** The returned function throws MR-R04, naming the field under `path`, for a value that does not fit. */
export function compileEncoder(layout: Layout, path = ''): (value: unknown, writer: ByteWriter) => void {
  const source = new SourceWriter()
  const code = new EncoderCode(source)
  code.value(layout, 'value', path)
  return source.compile('encode', ['value', 'w']) as (value: unknown, writer: ByteWriter) => void
}

class EncoderCode {
  readonly #source: SourceWriter
  readonly #misfit: string
  readonly #number: string
  readonly #integer: string
  readonly #bigint: string
  readonly #untyped: string

  constructor(source: SourceWriter) {
    this.#source = source
    this.#misfit = source.constant(support.misfit)
    this.#number = source.constant(support.writeNumber)
    this.#integer = source.constant(support.writeInteger)
    this.#bigint = source.constant(support.writeBigint)
    this.#untyped = source.constant(writeUntyped)
  }

  /** Writes the value of the variable `v`. */
  value(layout: Layout, v: string, path: string): void {
    switch (layout.kind) {
      case 'string':
        this.#require(`typeof ${v} === 'string'`, v, path, 'a string')
        return this.#line(`w.string(${v})`)
      case 'number':
        this.#require(`typeof ${v} === 'number'`, v, path, 'a number')
        return this.#line(`${this.#number}(w, ${v})`)
      case 'int':
        this.#require(`Number.isSafeInteger(${v})`, v, path, 'a safe integer')
        return this.#line(`${this.#integer}(w, ${v})`)
      case 'bigint':
        this.#require(`typeof ${v} === 'bigint'`, v, path, 'a bigint')
        return this.#line(`${this.#bigint}(w, ${v})`)
      case 'boolean':
        this.#require(`typeof ${v} === 'boolean'`, v, path, 'a boolean')
        return this.#line(`w.u8(${v} ? 1 : 0)`)
      case 'date':
        this.#require(`${v} instanceof Date`, v, path, 'a Date')
        return this.#line(`${this.#number}(w, ${v}.getTime())`)
      case 'bytes':
        this.#require(`${v} instanceof Uint8Array`, v, path, 'a Uint8Array')
        return this.#line(`w.blob(${v})`)
      case 'untyped':
        return this.#line(`${this.#untyped}(${v}, w)`)
      case 'choice':
        return this.#choice(layout, v, path)
      case 'nullable':
      case 'optional':
        this.#line(`if (${v} === ${layout.kind === 'nullable' ? 'null' : 'undefined'}) w.u8(0)`)
        this.#line('else {')
        this.#line('w.u8(1)')
        this.value(layout.inner, v, path)
        return this.#line('}')
      case 'array':
        this.#require(`Array.isArray(${v})`, v, path, 'an array')
        return this.#elements(layout.item, v, `${v}.length`, '0', path)
      case 'set':
        this.#require(`${v} instanceof Set`, v, path, 'a Set')
        return this.#iterate(`${v}.size`, v, (element) => this.#element(layout.item, element, `${path}[]`))
      case 'map':
        this.#require(`${v} instanceof Map`, v, path, 'a Map')
        return this.#iterate(`${v}.size`, v, (entry) => {
          const key = this.#read(`${entry}[0]`)
          const held = this.#read(`${entry}[1]`)
          this.#element(layout.key, key, `${path}{key}`)
          this.value(layout.value, held, `${path}{}`)
        })
      case 'record':
        this.#requireObject(v, path)
        return this.#named(layout.value, v, `Object.keys(${v})`, `${path}{}`)
      case 'tuple':
        return this.#tuple(layout, v, path)
      case 'object':
        return this.#object(layout, v, path)
      case 'union':
        return this.#union(layout, v, path)
      default:
        return unreachable(layout)
    }
  }

  #choice(layout: LayoutOf<'choice'>, v: string, path: string): void {
    const values = layout.values.map(choiceValue)
    const expected = values.length > 5 ? 'one of the listed values' : values.map((value) => quoted(value)).join(' or ')
    if (values.length === 1) {
      this.#require(`${v} === ${this.#source.constant(values[0])}`, v, path, expected)
      return
    }
    const indexes = this.#source.constant(new Map(values.map((value, index) => [value, index])))
    const index = this.#read(`${indexes}.get(${v})`)
    this.#require(`${index} !== undefined`, v, path, expected)
    this.#line(`w.varint(${index})`)
  }

  #tuple(layout: LayoutOf<'tuple'>, v: string, path: string): void {
    const count = layout.items.length
    const bound = layout.rest === null ? ` && ${v}.length <= ${count}` : ''
    this.#require(`Array.isArray(${v})${bound}`, v, path, `an array of ${count} elements`)
    this.#line(`w.varint(${v}.length)`)
    // Elements beyond the array's end are undefined: only an optional one accepts that.
    for (const [index, item] of layout.items.entries())
      this.value(item, this.#read(`${v}[${index}]`), `${path}[${index}]`)
    if (layout.rest !== null) {
      this.#line(`if (${v}.length > ${count}) {`)
      this.#elements(layout.rest, v, `${v}.length - ${count}`, String(count), path)
      this.#line('}')
    }
  }

  #object(layout: LayoutOf<'object'>, v: string, path: string): void {
    this.#requireObject(v, path)
    for (const field of layout.fields) {
      const step = path === '' ? field.name : `${path}.${field.name}`
      const held = this.#read(fieldRead(v, field.name))
      if (!field.optional) this.value(field.layout, held, step)
      else {
        // 0 missing, 1 a value follows, 2 there but undefined.
        this.#line(`if (${held} === undefined) w.u8(${fieldTest(v, field.name)} ? 2 : 0)`)
        this.#line('else {')
        this.#line('w.u8(1)')
        this.value(field.layout, held, step)
        this.#line('}')
      }
    }
    if (layout.rest !== null) {
      const names = this.#source.constant(new Set(layout.fields.map((field) => field.name)))
      this.#named(
        layout.rest,
        v,
        `Object.keys(${v}).filter((name) => !${names}.has(name))`,
        path === '' ? '*' : `${path}.*`,
      )
    }
  }

  #union(layout: LayoutOf<'union'>, v: string, path: string): void {
    const option = this.#read(`${this.#source.constant(optionChooser(layout))}(${v})`)
    this.#require(`${option} >= 0`, v, path, 'any of its union')
    this.#line(`w.varint(${option})`)
    this.#line(`switch (${option}) {`)
    for (const [index, inner] of layout.options.entries()) {
      this.#line(`case ${index}: {`)
      this.value(inner, v, path)
      this.#line('break }')
    }
    this.#line('}')
  }

  /** Names and values of the own fields that the expression lists. */
  #named(layout: Layout, v: string, namesExpression: string, path: string): void {
    const names = this.#read(namesExpression)
    this.#iterate(`${names}.length`, names, (name) => {
      this.#line(`w.string(${name})`)
      this.value(layout, this.#read(`${v}[${name}]`), path)
    })
  }

  #elements(item: Layout, v: string, countExpression: string, from: string, path: string): void {
    const index = this.#source.name('i')
    this.#line(`w.varint(${countExpression})`)
    this.#line(`for (let ${index} = ${from}; ${index} < ${v}.length; ${index}++) {`)
    this.#element(item, this.#read(`${v}[${index}]`), `${path}[]`)
    this.#line('}')
  }

  #iterate(countExpression: string, iterable: string, body: (element: string) => void): void {
    const element = this.#source.name('e')
    this.#line(`w.varint(${countExpression})`)
    this.#line(`for (const ${element} of ${iterable}) {`)
    body(element)
    this.#line('}')
  }

  /** An element that may take no bytes gets one, so that a reader can hold a count against the bytes left. */
  #element(layout: Layout, v: string, path: string): void {
    if (minimumBytes(layout) === 0) this.#line('w.u8(0)')
    this.value(layout, v, path)
  }

  #read(expression: string): string {
    const name = this.#source.name('v')
    this.#line(`const ${name} = ${expression}`)
    return name
  }

  #requireObject(v: string, path: string): void {
    this.#require(`typeof ${v} === 'object' && ${v} !== null`, v, path, 'an object')
  }

  #require(condition: string, v: string, path: string, expected: string): void {
    this.#line(`if (!(${condition})) throw ${this.#misfit}(${JSON.stringify(path)}, ${JSON.stringify(expected)}, ${v})`)
  }

  #line(text: string): void {
    this.#source.line(text)
  }
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : typeof value === 'bigint' ? `${value}n` : String(value)
}
