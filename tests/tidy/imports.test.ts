import { describe, expect, it } from 'vitest'
import { importsOf, isTest, typescriptFiles } from './sources.ts'

const belowTasks = [
  'base',
  'record',
  'state',
  'storage',
  'network',
  'control',
  'checkpoint',
  'operators',
  'connectors',
  'job',
]

/**
 * The one direction of dependencies inside runtime/ (design.md): a folder may import those named here and itself. What is not a
 * folder (runtime/api.ts) shows users the parts and may import every one of them.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  base: [],
  record: ['base'],
  state: ['base', 'record'],
  storage: ['base', 'record'],
  network: ['base', 'record'],
  control: ['base', 'record'],
  checkpoint: ['base', 'record', 'state', 'storage', 'network', 'control'],
  operators: ['base', 'record', 'state', 'storage'],
  connectors: ['base', 'record', 'state', 'storage', 'operators'],
  job: ['base', 'record', 'state', 'storage', 'operators'],
  task: belowTasks,
  worker: [...belowTasks, 'task'],
  coordinator: [...belowTasks, 'task'],
  rest: [...belowTasks, 'task', 'coordinator'],
}
const everything = Object.keys(allowed)
const outermost: Readonly<Record<string, readonly string[]>> = {
  // A mini cluster in real time, and one of a job file, stand on what local mode stands on.
  testkit: [...everything, 'local'],
  local: everything,
  cli: [...everything, 'local'],
  simulation: [...everything, 'local', 'testkit'],
}
const table = { ...allowed, ...outermost }

/** Contracts hold types and constants only; anybody may know them. */
const isContract = (path: string): boolean => /(^|[/-])contract\.ts$/.test(path)
const folderOf = (path: string): string | undefined => /^runtime\/([^/]+)\//.exec(path)?.[1]

describe('imports', () => {
  const runtime = typescriptFiles().filter(({ path }) => path.startsWith('runtime/'))

  it('point one way', () => {
    const wrong: string[] = []
    for (const file of runtime) {
      const folder = folderOf(file.path)
      if (folder === undefined || isTest(file)) continue
      if (table[folder] === undefined) wrong.push(`${file.path}: the table above does not know the folder ${folder}`)
      for (const imported of importsOf(file)) {
        const from = folderOf(imported)
        const fits = isContract(imported) || from === folder || (from !== undefined && table[folder]?.includes(from))
        // The test kit's hand-written clock is for tests and their harnesses.
        const harness = from === 'testkit' && file.path.endsWith('/harness.ts')
        // The command reads manifests; the schemas import nothing of the runtime.
        const schema = folder === 'cli' && imported.startsWith('crds/')
        if (!fits && !harness && !schema) wrong.push(`${file.path} imports ${imported}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it('of the schemas of the API are their own', () => {
    const wrong = typescriptFiles()
      .filter((file) => file.path.startsWith('crds/') && !isTest(file))
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => !imported.startsWith('crds/'))
      .map(({ file, imported }) => `${file.path} imports ${imported}`)
    expect(wrong).toEqual([])
  })

  it('of a contract are contracts, identities and names only', () => {
    const wrong = runtime
      .filter(({ path }) => isContract(path))
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => !isContract(imported) && !/^runtime\/(base|record)\//.test(imported))
      .map(({ file, imported }) => `${file.path} imports ${imported}`)
    expect(wrong).toEqual([])
  })

  it('reach the simulation from nowhere', () => {
    const wrong = runtime
      .filter(({ path }) => folderOf(path) !== 'simulation')
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => folderOf(imported) === 'simulation')
      .map(({ file, imported }) => `${file.path} imports ${imported}`)
    expect(wrong).toEqual([])
  })
})
