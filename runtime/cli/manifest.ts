// A manifest: the StreamJob of a YAML file, and the ConfigMaps that lie beside it.

import { z } from 'zod'
import { laterFieldsOf } from '../../crds/not-yet.ts'
import { pathText, readDocument } from '../../crds/problems.ts'
import type { Problem } from '../../crds/problems.ts'
import { API_VERSION, metadata } from '../../crds/resource.ts'
import { savepoint } from '../../crds/savepoint.ts'
import { streamJob } from '../../crds/stream-job.ts'
import type { StreamJob } from '../../crds/stream-job.ts'
import { commandError } from './errors.ts'
import { yamlDocuments } from './yaml-documents.ts'
import type { YamlDocument } from './yaml-documents.ts'

export interface Manifest {
  readonly job: StreamJob
  /** `<namespace>/<name>` (rule 28). */
  readonly name: string
  /** The job's spec as it is written, without defaults. */
  readonly written: Readonly<Record<string, unknown>>
  /** Of the job's namespace: files by key, by the ConfigMap's name. */
  readonly configMaps: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>
}

const namespaceUsual = 'default'

/** Throws MR-L16 with every place that is wrong, or MR-L17 for fields that are to come. `file` names it in errors. */
export function readManifest(text: string, file: string): Manifest {
  const documents = yamlDocuments(text, file)
  const document = onlyJob(documents, file)
  refuseLaterFields(document, file)
  const job = checked(streamJob, document, file)
  const namespace = job.metadata.namespace ?? namespaceUsual
  const { spec: written } = document.value as { readonly spec: Readonly<Record<string, unknown>> }
  for (const other of documents) if (isOurs(other, 'Savepoint')) checked(savepoint, other, file)
  return {
    job,
    name: `${namespace}/${job.metadata.name}`,
    written,
    configMaps: configMapsOf(documents, namespace, file),
  }
}

function onlyJob(documents: readonly YamlDocument[], file: string): YamlDocument {
  for (const document of documents) {
    const { apiVersion, kind } = headOf(document)
    if (
      !String(apiVersion).startsWith('millrace.dev/') ||
      isOurs(document, 'StreamJob') ||
      isOurs(document, 'Savepoint')
    )
      continue
    const what = `there is no ${String(kind)} of ${String(apiVersion)}; there are StreamJob and Savepoint of ${API_VERSION}`
    throw commandError('MR-L16', `${file}, ${document.placeOf(['apiVersion'])}: ${what}.`)
  }
  const jobs = documents.filter((document) => isOurs(document, 'StreamJob'))
  const [job, another] = jobs
  if (job === undefined)
    throw commandError(
      'MR-L16',
      `${file} has no StreamJob: an object with apiVersion ${API_VERSION} and kind StreamJob.`,
    )
  if (another !== undefined)
    throw commandError(
      'MR-L16',
      `${file} has ${jobs.length} StreamJobs; a command is about one. The second begins at ${another.placeOf([])}.`,
    )
  return job
}

function headOf({ value }: YamlDocument): { readonly apiVersion?: unknown; readonly kind?: unknown } {
  return typeof value === 'object' && value !== null ? value : {}
}

function isOurs(document: YamlDocument, ofKind: 'StreamJob' | 'Savepoint'): boolean {
  const { apiVersion, kind } = headOf(document)
  return apiVersion === API_VERSION && kind === ofKind
}

function refuseLaterFields(document: YamlDocument, file: string): void {
  const [first, ...others] = laterFieldsOf(document.value).map(
    ({ path, value, instead }) =>
      `${file}, ${document.placeOf(path)}: ${pathText(path)}${typeof value === 'object' ? '' : `, ${JSON.stringify(value)},`} is not there yet; ${instead}.`,
  )
  if (first !== undefined) throw commandError('MR-L17', [first, ...others].join('\n'))
}

function checked<Schema extends z.ZodType>(schema: Schema, document: YamlDocument, file: string): z.output<Schema> {
  const read = readDocument(schema, document.value)
  if (read.kind === 'fits') return read.object
  throw commandError('MR-L16', problemLines(read.problems, document, file))
}

function problemLines(problems: readonly Problem[], document: YamlDocument, file: string): string {
  return problems.map(({ path, message }) => `${file}, ${document.placeOf(path)}: ${message}.`).join('\n')
}

const fileName = z.string().regex(/^(?!\.\.?$)[-._a-zA-Z0-9]+$/, 'is no name of a file')

/** What of a ConfigMap concerns us; the API server checks the rest. */
const configMap = z.looseObject({
  metadata,
  data: z.record(fileName, z.string()).optional(),
  binaryData: z.record(fileName, z.base64()).optional(),
})

function configMapsOf(documents: readonly YamlDocument[], namespace: string, file: string): Manifest['configMaps'] {
  const maps = new Map<string, ReadonlyMap<string, Uint8Array>>()
  for (const document of documents) {
    const { apiVersion, kind } = headOf(document)
    if (apiVersion !== 'v1' || kind !== 'ConfigMap') continue
    const { metadata: its, data = {}, binaryData = {} } = checked(configMap, document, file)
    if ((its.namespace ?? namespaceUsual) !== namespace) continue
    if (maps.has(its.name))
      throw commandError(
        'MR-L16',
        `${file}, ${document.placeOf(['metadata', 'name'])}: there are two ConfigMaps ${its.name}.`,
      )
    maps.set(
      its.name,
      new Map([
        ...Object.entries(data).map(([key, text]) => [key, Buffer.from(text)] as const),
        ...Object.entries(binaryData).map(([key, text]) => [key, Buffer.from(text, 'base64')] as const),
      ]),
    )
  }
  return maps
}
