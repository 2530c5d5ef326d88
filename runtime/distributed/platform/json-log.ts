// A process's log: one JSON object a line.

import type { LogSink } from '../../local/platform/real-environment.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof levels)[number]

export interface JsonLogOptions {
  readonly level: LogLevel
  /** Of each line, such as the worker's name. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly write: (line: string) => void
}

export function jsonLog({ level, fields: own, write }: JsonLogOptions): LogSink {
  const least = levels.indexOf(level)
  return (level, message, fields) => {
    if (levels.indexOf(level) < least) return
    write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...own, ...fields }, plain)}\n`)
  }
}

/** What JSON would show as {} or not at all. */
function plain(_name: string, value: unknown): unknown {
  if (value instanceof Error) return value.message
  return typeof value === 'bigint' ? String(value) : value
}
