import { readdir, readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'
import { expect, it } from 'vitest'
import { readDocument } from './problems.ts'
import { savepoint } from './savepoint.ts'
import { streamJob } from './stream-job.ts'

const examples = new URL('../examples/', import.meta.url)

interface Document {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
}

const files = (await readdir(examples, { recursive: true })).filter((path) => path.endsWith('.yaml')).toSorted()

async function documentsOf(path: string): Promise<Document[]> {
  const text = await readFile(new URL(path, examples), 'utf8')
  return parseAllDocuments(text).map((document) => document.toJS() as Document)
}

it.each(files)('examples/%s fits its schema, its code is the file beside it, and it names no storage', async (path) => {
  const documents = await documentsOf(path)
  const job = documents.find(({ kind }) => kind === 'StreamJob')
  const read = readDocument(streamJob, job)
  expect(read).toMatchObject({ kind: 'fits' })
  if (read.kind !== 'fits') return
  const { spec } = read.object
  expect(spec.storage).toBeUndefined()
  expect(spec.nats).toBeUndefined()
  const { configMap } = spec.program.module
  if (configMap === undefined) return
  const code = documents.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap.name)
  expect(Object.keys(code!.data!)).toContain(configMap.key)
  for (const [name, text] of Object.entries(code!.data!))
    expect(text).toBe(await readFile(new URL(name, new URL(path, examples)), 'utf8'))
})

it('the Savepoints that docs/operator.md shows fit their schema', async () => {
  const text = await readFile(new URL('../docs/operator.md', import.meta.url), 'utf8')
  const shown = [...text.matchAll(/^```yaml\n([^]*?)^```$/gm)]
    .flatMap(([, yaml]) => parseAllDocuments(yaml!).map((document) => document.toJS() as Document))
    .filter(({ kind }) => kind === 'Savepoint')
  expect(shown.length).toBeGreaterThan(0)
  for (const document of shown) expect(readDocument(savepoint, document)).toMatchObject({ kind: 'fits' })
})

it('there is one for a cluster of each kind: code in an image, code in a ConfigMap', () => {
  expect(files).toEqual(['flights/job.yaml', 'flights/kubernetes.yaml', 'ledger/kubernetes.yaml', 'sensors/job.yaml'])
})
