import { describe, expect, it } from 'vitest'
import { importsOf, isTest, placesOf, typescriptFiles } from './sources.ts'

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
  admin: [...belowTasks, 'task', 'coordinator'],
}
const everything = Object.keys(allowed)
const outermost: Readonly<Record<string, readonly string[]>> = {
  // A mini cluster in real time, and one of a job file, stand on what local mode stands on.
  testkit: [...everything, 'local'],
  local: everything,
  supervisor: ['base'],
  distributed: [...everything, 'local'],
  cli: [...everything, 'local', 'distributed', 'supervisor'],
  simulation: [...everything, 'local', 'testkit', 'distributed'],
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

  it('of the operator are the schemas, its own, and of the runtime what both sides must agree on; the runtime knows nothing of it', () => {
    const files = typescriptFiles().filter((file) => !isTest(file))
    const shared = [
      /^crds\//,
      /^operator\//,
      /^runtime\/(base|control)\//,
      /^runtime\/distributed\/contract\.ts$/,
      /^runtime\/rest\/([a-z]+-)?resources\.ts$/,
      /^runtime\/local\/platform\/real-environment\.ts$/,
      // The log of every process of Millrace has one form.
      /^runtime\/distributed\/platform\/json-log\.ts$/,
    ]
    const own = files.filter(({ path }) => path.startsWith('operator/'))
    const wrong = own
      .filter(({ path }) => !/\/harness(\.ts$|\/)/.test(path))
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => !shared.some((place) => place.test(imported)))
    const back = files
      .filter(({ path }) => path.startsWith('runtime/') || path.startsWith('crds/'))
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => imported.startsWith('operator/'))
    expect([...wrong, ...back].map(({ file, imported }) => `${file.path} imports ${imported}`)).toEqual([])
  })

  it('of decisions about a job are pure: no client, no cache, no act', () => {
    const pure = /^operator\/(decide|upgrade|validate|status|conditions|revision|progress)[^/]*\.ts$/
    const inner = [
      pure,
      /^operator\/((savepoint-)?contract|resources\/[a-z-]+)\.ts$/,
      /^crds\//,
      /^runtime\/base\/errors\.ts$/,
    ]
    const files = typescriptFiles().filter((file) => pure.test(file.path) && !isTest(file))
    const wrong = files
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => !inner.some((place) => place.test(imported)))
      .map(({ file, imported }) => `${file.path} imports ${imported}`)
    const clocks = files.flatMap((file) =>
      placesOf(file, /\bDate\.now\b|\bnew Date\(\s*\)|\bMath\.random\b|\bset(Timeout|Interval)\b/),
    )
    expect(files.length).toBeGreaterThan(10)
    expect([...wrong, ...clocks]).toEqual([])
  })

  it('of the e2e files are not of the runtime; the ledger server shares no code with what it judges, and runs where only Node is', () => {
    const files = typescriptFiles().filter((file) => file.path.startsWith('e2e/') && !isTest(file))
    // What a job has left in S3 is read by its formats, which are the product's to say.
    const storage = 'e2e/scenarios/support/storage.ts'
    const format =
      /^runtime\/(storage\/(contract|head-contract|head-format|paths|s3\/s3-head)|checkpoint\/manifest|coordinator\/cleanup)\.ts$/
    const inner = files
      .flatMap((file) => importsOf(file).map((imported) => ({ file, imported })))
      .filter(({ imported }) => imported.startsWith('runtime/'))
      .filter(({ file, imported }) => file.path !== storage || !format.test(imported))
      .map(({ imported }) => imported)
    // The clock that an operator in the scenario's own process is given, and the choice of a storm that its seed repeats.
    const needed = ['runtime/local/platform/real-environment.ts', 'runtime/testkit/manual-clock.ts']
    expect(inner.toSorted()).toEqual(needed)
    const ledger = files.filter(({ path }) => path.startsWith('e2e/harness/ledger-'))
    const strange = ledger.flatMap((file) => placesOf(file, /\bfrom '(?!node:|\.\/ledger-)/))
    expect(ledger.length).toBeGreaterThan(0)
    expect(strange).toEqual([])
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
