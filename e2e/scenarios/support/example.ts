// The code of the ledger example, with places changed.

import { readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'

const example = new URL('../../../examples/ledger/kubernetes.yaml', import.meta.url)

/** The objects of the manifest. */
export async function exampleObjects(): Promise<
  readonly [{ readonly spec: Readonly<Record<string, unknown>> }, { readonly data: Readonly<Record<'job.ts', string>> }]
> {
  const documents = parseAllDocuments(await readFile(example, 'utf8'))
  return documents.map((document) => document.toJS()) as never
}

/** job.ts with another text in place of one that must be there. */
export async function exampleWith(text: string, other: string): Promise<string> {
  const [, { data }] = await exampleObjects()
  if (!data['job.ts'].includes(text)) throw new Error(`the example does not say ${text} any more`)
  return data['job.ts'].replace(text, other)
}
