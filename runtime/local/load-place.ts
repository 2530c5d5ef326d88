// Where the code is that could not be loaded: Node says it in an error's stack alone, in two ways.

import { fileURLToPath } from 'node:url'
import { isUserCode } from '../base/user-place.ts'

export interface Place {
  /** By its real path, whatever links lead to it. */
  readonly path: string
  /** `<line>[:<column>]` */
  readonly at: string
}

/** undefined where Node says none, as of a name that is declared twice. */
export function placeOf(error: unknown): Place | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined
  return shownPlace(error.stack) ?? thrownPlace(error.stack)
}

/** Syntax: before the error stand `<file>:<line>` and lines of the source, and carets below the one that is meant. */
function shownPlace(stack: string): Place | undefined {
  const [head = '', ...lines] = stack.split('\n')
  const named = /^(\/.+|[A-Za-z]:\\.+|file:\/\/.+):(\d+)$/.exec(head)
  if (named === null) return undefined
  const carets = lines.find((line) => /^\s*\^+$/.test(line))
  const column = carets === undefined ? '' : `:${carets.indexOf('^') + 1}`
  return { path: pathOf(named[1]!), at: `${named[2]}${column}` }
}

/** What the file's own code threw: the first frame that is the user's. Whoever calls the runtime wrongly is the one to be named. */
function thrownPlace(stack: string): Place | undefined {
  for (const [, file, at] of stack.matchAll(/^ {4}at .*?(file:\/\/\S+?):(\d+:\d+)\)?$/gm))
    if (isUserCode(file!)) return { path: pathOf(file!), at: at! }
  return undefined
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file
}
