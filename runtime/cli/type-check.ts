// Types of a job file, by the TypeScript compiler that its author has, else by the one beside millrace. Node runs job files without
// looking at types, so this is the only place where they matter. Nothing is written but a configuration in a folder for temporaries.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MillraceError } from '../base/errors.ts'
import { commandError } from './errors.ts'

export type TypeCheck =
  | { readonly kind: 'right'; readonly compiler: string }
  | { readonly kind: 'wrong'; readonly compiler: string; readonly errors: readonly string[] }
  /** JavaScript. */
  | { readonly kind: 'none' }
  /** Neither right nor wrong. */
  | { readonly kind: 'unknown'; readonly why: string }

/** A compiler that takes longer hangs: a job and the packages that it imports take seconds. */
const compilerDeadlineMs = 120_000

/** `beside` is where to look when the job's own folders have no compiler: millrace's. */
export async function checkTypes(jobFile: string, beside: string = ownFolder): Promise<TypeCheck> {
  if (!/\.[cm]?tsx?$/.test(jobFile)) return { kind: 'none' }
  const folder = dirname(jobFile)
  const compiler = upward(folder, compilerPath) ?? upward(beside, compilerPath)
  if (compiler === undefined)
    return { kind: 'unknown', why: 'no TypeScript compiler was found; install typescript beside the job file' }
  const name = `TypeScript ${versionOf(compiler)}`
  let scratch: string
  try {
    scratch = await mkdtemp(join(tmpdir(), 'millrace-types-'))
  } catch (error) {
    return { kind: 'unknown', why: `there is no place for temporaries (${String(error)})` }
  }
  try {
    const project = join(scratch, 'tsconfig.json')
    await writeFile(project, JSON.stringify(configFor(jobFile)))
    return judged(name, { folder, project, said: await compile(compiler, { project, folder }) })
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** MR-L21; undefined: they are not wrong, as far as is known. */
export function typesError(types: TypeCheck): MillraceError | undefined {
  return types.kind === 'wrong' ? commandError('MR-L21', types.errors.join('\n')) : undefined
}

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.d.ts'
const ownFolder = fileURLToPath(new URL('..', import.meta.url))
const compilerPath = 'node_modules/typescript/bin/tsc'

/** The nearest `path` that is there, from the folder up to the root. */
function upward(folder: string, path: string): string | undefined {
  const candidate = join(folder, path)
  if (existsSync(candidate)) return candidate
  const above = dirname(folder)
  return above === folder ? undefined : upward(above, path)
}

function versionOf(compiler: string): string {
  const description = join(dirname(compiler), '..', 'package.json')
  return (JSON.parse(readFileSync(description, 'utf8')) as { readonly version: string }).version
}

/** What Node and the job's loader do decides what is right; all else is as the author's own configuration says. */
function configFor(jobFile: string): unknown {
  const folder = dirname(jobFile)
  const theirs = upward(folder, 'tsconfig.json')
  const typeRoots = [upward(folder, 'node_modules/@types'), upward(ownFolder, 'node_modules/@types')].filter(
    (root) => root !== undefined,
  )
  const hasNode = typeRoots.some((root) => existsSync(join(root, 'node')))
  const usual = { target: 'esnext', lib: ['esnext'], strict: true, types: hasNode ? ['node'] : [] }
  return {
    ...(theirs === undefined ? {} : { extends: theirs }),
    compilerOptions: {
      ...(theirs === undefined ? usual : {}),
      // Not nodenext: without a package.json Node sees by its syntax that a file is a module, and the compiler would not.
      module: 'esnext',
      moduleResolution: 'bundler',
      moduleDetection: 'force',
      noEmit: true,
      composite: false,
      incremental: false,
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      verbatimModuleSyntax: true,
      skipLibCheck: true,
      typeRoots,
      // As the loader resolves them, whatever lies beside the job file.
      paths: {
        millrace: [join(ownFolder, `api${extension}`)],
        'millrace/connectors': [join(ownFolder, 'connectors', `api${extension}`)],
        zod: [fileURLToPath(new URL('.', import.meta.resolve('zod')))],
      },
    },
    files: [jobFile],
    include: [],
  }
}

interface Said {
  /** undefined: it did not end by itself. */
  readonly exitCode: number | undefined
  readonly text: string
}

function compile(compiler: string, at: { readonly project: string; readonly folder: string }): Promise<Said> {
  const words = [compiler, '--project', at.project, '--pretty', 'false']
  return new Promise((settle) => {
    execFile(process.execPath, words, { cwd: at.folder, timeout: compilerDeadlineMs }, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined
      settle({ exitCode, text: `${stdout}${stderr}` })
    })
  })
}

const DIAGNOSTIC = /^(.+?)\((\d+),(\d+)\): error (TS\d+: .*)$/

function judged(
  compiler: string,
  { folder, project, said }: { readonly folder: string; readonly project: string; readonly said: Said },
): TypeCheck {
  if (said.exitCode === 0) return { kind: 'right', compiler }
  const errors: string[] = []
  /** Whether the last one is told: what is indented below it goes with it. */
  let told = false
  let isOtherwise = said.exitCode === undefined
  for (const line of said.text.split('\n')) {
    if (/^\s/.test(line)) {
      if (told) errors.push(`${errors.pop()!}\n${line}`)
      continue
    }
    const found = DIAGNOSTIC.exec(line)
    const file = found === null ? undefined : resolve(folder, found[1]!)
    if (line.trim() !== '' && (file === undefined || file === project)) isOtherwise = true
    // Our own files are checked by our own rules, not by the author's.
    told = file !== undefined && file !== project && !file.startsWith(ownFolder)
    if (told) errors.push(`${relative(process.cwd(), file!)}:${found![2]}:${found![3]} ${found![4]}`)
  }
  if (errors.length > 0) return { kind: 'wrong', compiler, errors }
  if (isOtherwise)
    return { kind: 'unknown', why: `${compiler} could not check them: ${said.text.trim() || 'it did not end'}` }
  return { kind: 'right', compiler }
}
