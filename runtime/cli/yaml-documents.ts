// The documents of a YAML file, with the place of each field, as the API server would read them too.

import { LineCounter, isMap, isNode, isPair, isScalar, isSeq, parseAllDocuments, visit } from 'yaml'
import type { Document } from 'yaml'
import { commandError } from './errors.ts'

/** Of a field: names, and places in lists. */
export type FieldPath = readonly (string | number)[]

export interface YamlDocument {
  /** Plain data. */
  readonly value: unknown
  /** `line 3, column 5` of the field, or of what is nearest to it among those that are there. */
  readonly placeOf: (path: FieldPath) => string
}

/** Throws MR-L16 for the first place where it is no YAML, or YAML that Kubernetes reads otherwise than this command. */
export function yamlDocuments(text: string, file: string): YamlDocument[] {
  const lines = new LineCounter()
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })
  // Without any document the parser gives a list of another kind, which is as empty.
  const documents: readonly Document.Parsed[] = Array.isArray(parsed) ? parsed : []
  const placeAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `line ${line}, column ${col}`
  }
  const refuse = (offset: number, what: string): never => {
    throw commandError('MR-L16', `${file}, ${placeAt(offset)}: ${what}.`)
  }
  return documents
    .map((document) => {
      const error = document.errors[0]
      if (error !== undefined) refuse(error.pos[0], error.message.replace(/\.$/, ''))
      refuseUnclear(document, refuse)
      return {
        value: valueOf(document, refuse),
        placeOf: (path: FieldPath) => placeAt(offsetOf(document, path)),
      }
    })
    .filter(({ value }) => value !== null)
}

function valueOf(document: Document.Parsed, refuse: (offset: number, what: string) => never): unknown {
  try {
    return document.toJS()
  } catch (error) {
    // So many aliases of aliases that what they stand for would not fit into memory.
    return refuse(document.range[0], (error as Error).message.replace(/\.$/, ''))
  }
}

/** Kubernetes reads YAML 1.1, where these are truth values and octal numbers; YAML 1.2 has texts and decimal numbers there. */
const readTwoWays = /^(yes|no|on|off|[-+]?0\d+)$/i

function refuseUnclear(document: Document.Parsed, refuse: (offset: number, what: string) => never): void {
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.resolve(document) === undefined)
        refuse(alias.range?.[0] ?? 0, `there is no anchor ${alias.source} before this`)
    },
    Scalar: (key, { type, source, range }) => {
      if (key === 'key' || type !== 'PLAIN' || source === undefined || !readTwoWays.test(source)) return
      refuse(
        range?.[0] ?? 0,
        `${source} means one thing here and another to Kubernetes; write it in quotes, or as true, false or a decimal number`,
      )
    },
  })
}

function offsetOf(document: Document.Parsed, path: FieldPath): number {
  let node: unknown = document.contents
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0
  for (const part of path) {
    const inner = innerOf(node, part)
    if (inner === undefined) break
    offset = inner.offset
    node = inner.node
  }
  return offset
}

/** A field's place is that of its name: what is wrong may be the name, or a value that is not there. */
function innerOf(
  node: unknown,
  part: string | number,
): { readonly node: unknown; readonly offset: number } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(part)]
    return isNode(item) ? { node: item, offset: item.range?.[0] ?? 0 } : undefined
  }
  if (!isMap(node)) return undefined
  const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part))
  if (pair === undefined || !isScalar(pair.key)) return undefined
  return { node: pair.value, offset: pair.key.range?.[0] ?? 0 }
}
