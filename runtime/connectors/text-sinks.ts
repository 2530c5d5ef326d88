// What users write to files: JSON lines and CSV.

import type { Sink } from './contract.ts'
import { connectorError } from './errors.ts'
import { fileSink } from './file-sink.ts'

/** One JSON value a line, in `<folder>/part-….jsonl`; exactly once, visible at commit. Bigints are written as numbers where they fit, else as text. Throws MR-N19 for what JSON cannot hold: Maps, Sets, bytes, NaN. */
export function jsonLineFileSink<T>(options: { readonly folder: string }): Sink<T> {
  return fileSink(options.folder, { name: 'JSON lines', extension: 'jsonl', header: '', line: jsonLine })
}

/**
 * CSV with a header row (RFC 4180, lines end in a line feed), in `<folder>/part-….csv`; exactly once, visible at commit.
 * null and undefined are empty, dates ISO texts, objects JSON; Maps, Sets, bytes and NaN have no form (MR-N19).
 */
export function csvFileSink<T extends object>(options: {
  readonly folder: string
  /** Fields of the record, in the order of the columns. */
  readonly columns: readonly (keyof T & string)[]
}): Sink<T> {
  const { folder, columns } = options
  if (columns.length === 0) throw connectorError('MR-N06', 'CSV file sink: columns is empty.')
  const cellsOf = (value: T) => columns.map((column) => cell(value[column], column)).join(',')
  const header = `${columns.map((column) => cell(column, column)).join(',')}\n`
  return fileSink(folder, { name: 'CSV', extension: 'csv', header, line: (value) => `${cellsOf(value)}\n` })
}

function jsonLine(value: unknown): string {
  const text = JSON.stringify(value, jsonForm)
  if (text === undefined) throw connectorError('MR-N19', `JSON lines file sink: ${typeof value} has no JSON form.`)
  return `${text}\n`
}

function jsonForm(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  // As it stands in the record: toJSON has been called by now, and hides a Buffer and a Date without a time.
  refuseFormless(this[name], name)
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

function cell(value: unknown, column: string): string {
  const text = cellText(value, column)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function cellText(value: unknown, column: string): string {
  if (value === null || value === undefined) return ''
  refuseFormless(value, column)
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'bigint') return value.toString()
  return typeof value === 'string' ? value : (JSON.stringify(value, jsonForm) ?? '')
}

/** JSON would write {} for a Map and null for NaN without a word: wrong values in a sink that is exact. */
function refuseFormless(value: unknown, field: string): void {
  const what = formless(value)
  if (what === undefined) return
  const where = field === '' ? '' : ` in the field '${field}'`
  throw connectorError('MR-N19', `File sink: ${what}${where} has no form as text.`)
}

function formless(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value)
  if (typeof value !== 'object' || value === null) return undefined
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : undefined
  const bytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer
  return bytes || value instanceof Map || value instanceof Set ? `a ${value.constructor.name}` : undefined
}
