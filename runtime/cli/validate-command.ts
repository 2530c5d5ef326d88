// `millrace validate`: all that can be known of a job without running it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { counted } from '../base/counted.ts'
import { MillraceError } from '../base/errors.ts'
import type { ErrorCode } from '../base/errors.ts'
import { buildGraph } from '../job/build-graph.ts'
import { loadJob } from '../local/job-module.ts'
import { graphReport, graphText } from './graph-report.ts'
import type { GraphReport } from './graph-report.ts'
import { jobArguments } from './job-arguments.ts'
import { jobInput, parallelismUsually } from './job-input.ts'
import type { JobInput } from './job-input.ts'
import { writeFiles } from './job-module-files.ts'
import type { JobModule } from './job-module-files.ts'
import type { Terminal } from './terminal.ts'
import { checkTypes, typesError } from './type-check.ts'
import type { TypeCheck } from './type-check.ts'
import type { ValidateCommand } from './validate-options.ts'

export interface ValidateEdge {
  readonly terminal: Terminal
  /** In which relative paths are meant. */
  readonly folder: () => string
  readonly processors: number
}

/** What --json prints. */
interface Validation {
  job: string | undefined
  jobFile: string | undefined
  /** Where the code is, if it is not on this machine: then nothing of it was looked at. */
  image: string | undefined
  types: TypeCheck | undefined
  graph: GraphReport | undefined
  readonly warnings: string[]
  readonly errors: { readonly code: ErrorCode; readonly message: string }[]
}

const exitCodes = { valid: 0, wrong: 2, typesUnknown: 3 } as const

/** The exit code. Throws nothing for what is wrong with the job: it is told with all else. */
export async function validateJob(command: ValidateCommand, edge: ValidateEdge): Promise<number> {
  const found: Validation = {
    job: undefined,
    jobFile: undefined,
    image: undefined,
    types: undefined,
    graph: undefined,
    warnings: [],
    errors: [],
  }
  const input = await orError(found, () => jobInput(command, edge.folder()))
  if (input !== undefined) {
    found.job = input.name
    warnOfManifest(found, input)
    await orError(found, () => validateModule({ command, edge, input, found }))
  }
  edge.terminal.print(command.json ? JSON.stringify(found, undefined, 2) : textOf(found))
  if (found.errors.length > 0) return exitCodes.wrong
  return found.types?.kind === 'unknown' ? exitCodes.typesUnknown : exitCodes.valid
}

async function orError<T>(found: Validation, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    found.errors.push({ code: error.code, message: error.message })
    return undefined
  }
}

function warnOfManifest({ warnings }: Validation, { manifest }: JobInput): void {
  if (manifest === undefined) return
  if (manifest.state === 'suspended') warnings.push('spec.state is suspended: millrace run refuses the job.')
  if (manifest.unused.length > 0)
    warnings.push(`For a cluster alone, not used by millrace run: ${manifest.unused.join(', ')}.`)
}

async function validateModule(validating: Validating): Promise<void> {
  const { input, found } = validating
  const { module } = input
  switch (module.kind) {
    case 'in image':
      found.jobFile = module.path
      found.image = module.image
      found.types = { kind: 'unknown', why: inImageText(module.image) }
      return
    case 'file':
      if (module.image !== undefined)
        found.warnings.push(
          `The file that was checked is the one on this machine; ${module.image} may hold another one at the same path.`,
        )
      return validate(module.path, validating)
    case 'files':
      return withFiles(module, (jobFile) => validate(jobFile, validating))
    default:
      return module satisfies never
  }
}

function inImageText(image: string): string {
  return `the code is in the image ${image}, which is not looked at. The manifest's fields were checked and are right; types, arguments, graph and uids were not looked at: give millrace validate the job file that the image is built from`
}

/** The files of a ConfigMap are written to a folder for temporaries, which goes again. */
async function withFiles(
  { files, key }: Extract<JobModule, { kind: 'files' }>,
  work: (jobFile: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-validate-'))
  try {
    await writeFiles(files, folder)
    await work(join(folder, key))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Validating {
  readonly command: ValidateCommand
  readonly edge: ValidateEdge
  readonly input: JobInput
  readonly found: Validation
}

async function validate(jobFile: string, { command, edge, input, found }: Validating): Promise<void> {
  found.jobFile = input.module.kind === 'files' ? input.module.key : jobFile
  found.types = await checkTypes(jobFile)
  const wrong = typesError(found.types)
  if (wrong !== undefined) found.errors.push({ code: wrong.code, message: wrong.message })
  const { name, parallelism, maxParallelism, settings } = input
  const job = await loadJob(jobFile)
  const args = jobArguments(job.args, input.args, command.namedArgs)
  const parallelismDefault = parallelismUsually(edge.processors)
  const graph = buildGraph(job, { args, name, parallelism, parallelismDefault, maxParallelism, settings })
  found.graph = graphReport(graph)
  const { generatedUids } = found.graph
  // Without autoUid an operator with state must have one: those that have none have nothing to lose.
  if (graph.settings.autoUid && generatedUids.length > 0)
    found.warnings.push(
      `Generated uids: ${generatedUids.join(', ')}. State under them is lost when the graph before them changes; give each .uid('…').`,
    )
}

function textOf({ job, jobFile, image, types, graph, warnings, errors }: Validation): string {
  return [
    ...(job === undefined ? [] : [`job     ${job}`]),
    ...(jobFile === undefined ? [] : [`file    ${shorter(jobFile)}`]),
    ...(image === undefined ? [] : [`image   ${image}`]),
    ...(types === undefined ? [] : [`types   ${typesText(types)}`]),
    ...(image === undefined ? [] : ['graph   not checked']),
    ...(graph === undefined ? [] : [`graph   ${graphText(graph)}`]),
    ...section('Warnings', warnings),
    ...section(
      'Errors',
      errors.map(({ message }) => message),
    ),
  ].join('\n')
}

function shorter(path: string): string {
  const below = relative(process.cwd(), path)
  return below.startsWith('..') ? path : below
}

function typesText(types: TypeCheck): string {
  switch (types.kind) {
    case 'right':
      return `right, by ${types.compiler}`
    case 'wrong':
      return `wrong in ${counted(types.errors.length, 'place', 'places')}, by ${types.compiler}`
    case 'none':
      return 'none: the file is JavaScript'
    case 'unknown':
      return `not checked: ${types.why}`
    default:
      return types satisfies never
  }
}

function section(head: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${head}:`, ...lines.map((line) => `  ${line.replaceAll('\n', '\n  ')}`)]
}
