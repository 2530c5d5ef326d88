// Code that reads a batch's columns and makes records of them.

import type { ByteReader } from './contract.ts'
import { choicesOf, type Column } from './columns.ts'
import type { Layout } from './layout.ts'
import * as numbers from './number-column.ts'
import { compileDecoder } from './row-decode.ts'
import { SourceWriter } from './source-writer.ts'
import { readText } from './text-column.ts'

/** Appends `count` values; `view` has the offsets of the reader's positions. */
export type DecodeColumns = (reader: ByteReader, view: DataView, count: number, values: unknown[]) => void

/** The returned function throws MR-R01 for damaged bytes. */
export function compileColumnDecoder(layout: Layout, columns: readonly Column[]): DecodeColumns {
  const source = new SourceWriter()
  const readNumbers = source.constant(numbers.readNumbers)
  const assertIndexes = source.constant(numbers.assertIndexes)
  const read = (name: string): void =>
    source.line(`const ${name} = ${readNumbers}(r, view, count, ${source.constant(numbers.columnSpace())})`)
  const cells = columns.map((column, index) => {
    const states = `s${index}`
    const cell = `c${index}`
    if (column.stateful) {
      read(states)
      source.line(`${assertIndexes}(${states}, count, 4)`)
    }
    readColumn(source, column, { cell, read, states, assertIndexes })
    return { column, states, expression: cellExpression(source, column, cell) }
  })
  source.line('for (let k = 0; k < count; k++) {')
  for (const [index, { column }] of cells.entries()) {
    if (column.kind !== 'string') continue
    source.line(`const end${index} = o${index} + l${index}[k]`)
    source.line(`const c${index} = t${index}.substring(o${index}, end${index})`)
    source.line(`o${index} = end${index}`)
  }
  const held = cells.map(({ column, states, expression }) => {
    const whenEmpty = `(${states}[k] === 1 ? null : undefined)`
    return column.stateful ? `${states}[k] === 0 ? ${expression} : ${whenEmpty}` : expression
  })
  if (layout.kind === 'object' && columns.every((column) => column.name !== undefined)) buildRecord(source, cells, held)
  else source.line(`values.push(${held[0]})`)
  source.line('}')
  return source.compile('decodeColumns', ['r', 'view', 'count', 'values']) as DecodeColumns
}

function readColumn(
  source: SourceWriter,
  column: Column,
  names: {
    readonly cell: string
    readonly states: string
    readonly assertIndexes: string
    readonly read: (name: string) => void
  },
): void {
  const { cell, states, assertIndexes, read } = names
  switch (column.kind) {
    case 'string': {
      const index = cell.slice(1)
      read(`l${index}`)
      source.line(`const t${index} = ${source.constant(readText)}(r, l${index}, count)`)
      source.line(`let o${index} = 0`)
      return
    }
    case 'rows': {
      const decode = source.constant(compileDecoder(column.layout, column.layout, () => undefined))
      source.line(`const ${cell} = []`)
      const guarded = column.stateful ? `${states}[k] === 0 ? ${decode}(r) : undefined` : `${decode}(r)`
      source.line(`for (let k = 0; k < count; k++) ${cell}.push(${guarded})`)
      return
    }
    default:
      read(cell)
      if (column.kind === 'int') source.line(`${source.constant(numbers.assertWhole)}(${cell}, count)`)
      if (column.kind === 'boolean') source.line(`${assertIndexes}(${cell}, count, 2)`)
      if (column.kind === 'choice') source.line(`${assertIndexes}(${cell}, count, ${choicesOf(column).length})`)
  }
}

function cellExpression(source: SourceWriter, column: Column, cell: string): string {
  switch (column.kind) {
    case 'string':
      return cell
    case 'date':
      return `new Date(${cell}[k])`
    case 'boolean':
      return `${cell}[k] === 1`
    case 'choice':
      return `${source.constant(choicesOf(column))}[${cell}[k]]`
    default:
      return `${cell}[k]`
  }
}

/** Fields in the schema's order: a literal up to the first that may be missing, assignments after it. */
function buildRecord(
  source: SourceWriter,
  cells: readonly { readonly column: Column; readonly states: string }[],
  held: readonly string[],
): void {
  const firstOptional = cells.findIndex(({ column }) => column.optionalField)
  const literalEnd = firstOptional < 0 ? cells.length : firstOptional
  const field = (index: number): string => JSON.stringify(cells[index]!.column.name)
  const literal = held.slice(0, literalEnd).map((expression, index) => `${field(index)}: ${expression}`)
  source.line(`const o = { ${literal.join(', ')} }`)
  for (let index = literalEnd; index < cells.length; index++) {
    const { column, states } = cells[index]!
    const guard = column.optionalField ? `if (${states}[k] !== 2) ` : ''
    source.line(`${guard}o[${field(index)}] = ${held[index]}`)
  }
  source.line('values.push(o)')
}
