// Code that writes a batch's records column by column.
//
// A column that may have gaps begins with a column of states: 0 a value, 1 null, 2 the field is missing, 3 undefined.

import { gatherSpace } from './batch-header.ts'
import type { BinaryWriter } from './bytes.ts'
import { misfit } from './code-support.ts'
import { choicesOf, type Column } from './columns.ts'
import type { Layout } from './layout.ts'
import * as numbers from './number-column.ts'
import { compileEncoder } from './row-encode.ts'
import { fieldRead, fieldTest, SourceWriter } from './source-writer.ts'
import { writeTexts } from './text-column.ts'

/** Writes values[from, to). */
export type EncodeColumns = (values: readonly unknown[], from: number, to: number, writer: BinaryWriter) => void

/** The returned function throws MR-R04, naming the field, for a value that does not fit. */
export function compileColumnEncoder(layout: Layout, columns: readonly Column[]): EncodeColumns {
  const source = new SourceWriter()
  const misfitName = source.constant(misfit)
  const writeNumbers = source.constant(numbers.writeNumbers)
  source.line('const count = to - from')
  source.line(`const gathered = ${source.constant(gatherSpace)}(count)`)
  if (layout.kind === 'object') {
    source.line('for (let i = from; i < to; i++) {')
    source.line(
      `if (typeof values[i] !== 'object' || values[i] === null) throw ${misfitName}('', 'an object', values[i])`,
    )
    source.line('}')
  }
  for (const column of columns) {
    const cell = column.name === undefined ? 'values[i]' : fieldRead('values[i]', column.name)
    const loop = (body: () => void): void => {
      source.line('for (let i = from, k = 0; i < to; i++, k++) {')
      source.line(`const v = ${cell}`)
      body()
      source.line('}')
    }
    source.line('{')
    if (column.stateful) {
      loop(() => {
        const missing =
          column.optionalField && column.name !== undefined ? `(${fieldTest('values[i]', column.name)} ? 3 : 2)` : '3'
        source.line(`gathered[k] = ${statesIn(column, missing)}`)
      })
      source.line(`${writeNumbers}(w, gathered, count)`)
    }
    const skip = column.stateful ? `if (${emptyIn(column)}) continue` : ''
    const place = JSON.stringify(column.name ?? '')
    const demand = (condition: string, expected: string): void =>
      source.line(`if (!(${condition})) throw ${misfitName}(${place}, ${JSON.stringify(expected)}, v)`)
    const gather = (body: () => void): void => {
      loop(() => {
        if (skip !== '') source.line(skip.replace('continue', '{ gathered[k] = 0; continue }'))
        body()
      })
      source.line(`${writeNumbers}(w, gathered, count)`)
    }
    switch (column.kind) {
      case 'number':
        gather(() => {
          demand(`typeof v === 'number'`, 'a number')
          source.line('gathered[k] = v')
        })
        break
      case 'int':
        gather(() => {
          demand('Number.isSafeInteger(v)', 'a safe integer')
          source.line('gathered[k] = v === 0 ? 0 : v')
        })
        break
      case 'date':
        gather(() => {
          demand('v instanceof Date', 'a Date')
          source.line('gathered[k] = v.getTime()')
        })
        break
      case 'boolean':
        gather(() => {
          demand(`typeof v === 'boolean'`, 'a boolean')
          source.line('gathered[k] = v ? 1 : 0')
        })
        break
      case 'choice': {
        const values = choicesOf(column)
        const indexes = source.constant(new Map(values.map((value, index) => [value, index])))
        gather(() => {
          source.line(`const index = ${indexes}.get(v)`)
          demand('index !== undefined', 'one of the listed values')
          source.line('gathered[k] = index')
        })
        break
      }
      case 'string':
        source.line(`let joined = ''`)
        loop(() => {
          if (skip !== '') source.line(skip.replace('continue', '{ gathered[k] = 0; continue }'))
          demand(`typeof v === 'string'`, 'a string')
          source.line('gathered[k] = v.length')
          source.line('joined += v')
        })
        source.line(`${source.constant(writeTexts)}(w, gathered, count, joined)`)
        break
      case 'rows': {
        const encode = source.constant(compileEncoder(column.layout, column.name ?? ''))
        loop(() => source.line(`${skip}\n${encode}(v, w)`))
        break
      }
    }
    source.line('}')
  }
  return source.compile('encodeColumns', ['values', 'from', 'to', 'w']) as EncodeColumns
}

function statesIn(column: Column, missing: string): string {
  const otherwise = column.undefinable ? `v === undefined ? ${missing} : 0` : '0'
  return column.nullable ? `v === null ? 1 : ${otherwise}` : otherwise
}

function emptyIn(column: Column): string {
  return [column.nullable ? 'v === null' : '', column.undefinable ? 'v === undefined' : ''].filter(Boolean).join(' || ')
}
