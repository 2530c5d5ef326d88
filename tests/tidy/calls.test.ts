import { describe, expect, it } from 'vitest'
import { plantedFaults } from '../../runtime/base/planted.ts'
import { failpointNames } from '../../runtime/base/failpoints.ts'
import { isTest, placesOf, typescriptFiles } from './sources.ts'
import type { SourceFile } from './sources.ts'

/** Where the real world is met: everything else gets it as an argument. */
const edges: readonly RegExp[] = [
  /^runtime\/[^/]+\/platform\//,
  /^runtime\/cli\//,
  /(^|\/)main\.ts$/,
  /^bench\//,
  /^tests\//,
  // The parent that runs the simulation's processes, their entry, and the guard that takes the real things away.
  /^runtime\/simulation\/(runner|child|guard)\.ts$/,
]

interface Ban {
  readonly what: string
  readonly pattern: RegExp
  readonly instead: string
  /** Files that may, with the reason. */
  readonly except?: Readonly<Record<string, string>>
}

const world = {
  'runtime/simulation/world.ts': 'a step of the simulation rests on one real turn and hears of rejections',
}

const bans: readonly Ban[] = [
  { what: 'the wall clock', pattern: /\bDate\.now\b|\bnew Date\(\s*\)/, instead: 'environment.clock.wallMs' },
  { what: 'the monotonic clock', pattern: /\bperformance\.|\bprocess\.hrtime\b/, instead: 'environment.clock.nowMs' },
  {
    what: 'real timers and turns',
    pattern: /\b(setTimeout|setInterval|setImmediate)\b|\bprocess\.nextTick\b/,
    instead: 'environment.clock.timer or environment.executor.post',
    except: world,
  },
  {
    what: 'randomness',
    pattern: /\bMath\.random\b|\bcrypto\.(random|getRandom)|\brandom(UUID|Bytes|Int|FillSync)\b/,
    instead: 'environment.random',
  },
  {
    what: 'the process',
    pattern: /\bprocess\.(env|argv|exit|exitCode|on|off|once|cwd)\b/,
    instead: 'an argument',
    except: world,
  },
  { what: 'the real disk', pattern: /'(node:)?fs(\/promises)?'/, instead: 'a FileSystem' },
  {
    what: 'sockets, threads and processes',
    pattern: /from '(node:)?(net|http|https|http2|tls|dgram|dns|child_process|worker_threads|cluster)'/,
    instead: 'a transport or a slot provider',
  },
  { what: 'output to the console', pattern: /\bconsole\.|\bprocess\.std(out|err)\b/, instead: 'environment.log' },
  {
    what: 'what the garbage collector decides',
    pattern: /\b(WeakRef|FinalizationRegistry)\b/,
    instead: 'a map whose entries somebody removes',
  },
]

const sources = typescriptFiles()
const runtime = sources.filter(({ path }) => path.startsWith('runtime/'))
const inside = runtime.filter((file) => !isTest(file) && !edges.some((edge) => edge.test(file.path)))

const offences = (
  files: readonly SourceFile[],
  pattern: RegExp,
  except: Readonly<Record<string, string>> = {},
): string[] => files.filter(({ path }) => except[path] === undefined).flatMap((file) => placesOf(file, pattern))

describe('inside the edges', () => {
  for (const { what, pattern, instead, except } of bans)
    it(`nobody reaches for ${what}; use ${instead}`, () => {
      expect(offences(inside, pattern, except)).toEqual([])
    })

  it('the exceptions are still needed', () => {
    for (const { pattern, except = {} } of bans)
      for (const path of Object.keys(except))
        expect(
          offences(
            inside.filter((file) => file.path === path),
            pattern,
          ).length,
          path,
        ).toBeGreaterThan(0)
  })

  it('compression and hashing are the synchronous, pure kind', () => {
    const asynchronous =
      /\b(gzip|gunzip|deflate|inflate|brotliCompress|brotliDecompress|scrypt|pbkdf2|hkdf|subtle)\s*[(.]/
    expect(offences(inside, asynchronous)).toEqual([])
  })
})

describe('names that promise something', () => {
  const code = inside.filter(({ path }) => !path.startsWith('runtime/base/') && !path.startsWith('runtime/simulation/'))

  it('each planted fault is built into the code', () => {
    expect(plantedFaults.filter((name) => !code.some(({ text }) => text.includes(`'${name}'`)))).toEqual([])
  })

  it('each failpoint is passed by the code', () => {
    expect(failpointNames.filter((name) => !code.some(({ text }) => text.includes(`'${name}'`)))).toEqual([])
  })
})
