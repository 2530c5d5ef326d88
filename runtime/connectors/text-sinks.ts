// What users write to files: JSON lines and CSV.

import type { Sink } from './contract.ts'
import { connectorError } from './errors.ts'
import { fileSink } from './file-sink.ts'

/** One JSON value a line, in `<folder>/part-….jsonl`; exactly once, visible at commit. Bigints are written as numbers where they fit, else as text. */
export function jsonLineFileSink<T>(options: { readonly folder: string }): Sink<T> {
  return fileSink(options.folder, { name: 'JSON lines', extension: 'jsonl', header: '', line: jsonLine })
}

/**
 * CSV with a header row (RFC 4180, lines end in a line feed), in `<folder>/part-….csv`; exactly once, visible at commit.
 * null and undefined are empty, dates ISO texts, objects JSON.
 */
export function csvFileSink<T extends object>(options: {
  readonly folder: string
  /** Fields of the record, in the order of the columns. */
  readonly columns: readonly (keyof T & string)[]
}): Sink<T> {
  const { folder, columns } = options
  if (columns.length === 0) throw connectorError('MR-N06', 'CSV file sink: columns is empty.')
  const cellsOf = (value: T) => columns.map((column) => cell(value[column])).join(',')
  const header = `${columns.map(cell).join(',')}\n`
  return fileSink(folder, { name: 'CSV', extension: 'csv', header, line: (value) => `${cellsOf(value)}\n` })
}

function jsonLine(value: unknown): string {
  const text = JSON.stringify(value, bigintForm)
  if (text === undefined) throw connectorError('MR-N19', `JSON lines file sink: ${typeof value} has no JSON form.`)
  return `${text}\n`
}

function bigintForm(_: string, value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

function cell(value: unknown): string {
  const text = cellText(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'bigint') return value.toString()
  return typeof value === 'string' ? value : (JSON.stringify(value, bigintForm) ?? '')
}
