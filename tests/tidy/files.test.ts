import { describe, expect, it } from 'vitest'
import { isTest, readSource, repositoryFiles, typescriptFiles, withoutComments } from './sources.ts'

/** One idea a file: above this it says so, below that it must have a reason here. */
const linesUsual = 250
const linesMax = 600
const longFiles: Readonly<Record<string, string>> = {
  'runtime/simulation/job/cluster.ts': 'the processes of one simulated job; to be parted into coordinators and slots',
}

/** Names in here the stored layout gives, for ever. */
const golden = /^tests\/golden\/v\d+\//
/** Names that tools or custom give. */
const givenNames = new Set(['README.md', 'CHANGELOG.md', 'LICENSE', 'Dockerfile', 'Chart.yaml', 'NOTES.txt'])

const files = repositoryFiles()
const sources = typescriptFiles()
const linesOf = (text: string): number => text.trimEnd().split('\n').length

describe('files', () => {
  it('have names in kebab case', () => {
    const wrong = files
      .filter((path) => !golden.test(path))
      .filter((path) =>
        path
          .split('/')
          .some(
            (part) => !givenNames.has(part) && !/^[._]?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/.test(part),
          ),
      )
    expect(wrong).toEqual([])
  })

  it(`have at most ${linesMax} lines, unless a reason is given`, () => {
    const long = sources.filter(({ text }) => linesOf(text) > linesMax).map(({ path }) => path)
    expect(long.filter((path) => longFiles[path] === undefined)).toEqual([])
    expect(Object.keys(longFiles).filter((path) => !long.includes(path))).toEqual([])
    const usual = sources.filter((file) => !isTest(file) && linesOf(file.text) > linesUsual)
    for (const { path, text } of usual)
      console.warn(`${path} has ${linesOf(text)} lines; a normal file has up to ${linesUsual}.`)
  })

  it('name no place on the machine they were written on, and no registry', () => {
    const place = /(^|[\s'"`(=:])\/(home|root|work|Users)\/|\bregistry\.(npmjs|yarnpkg)|\bpythonhosted\b/m
    const wrong = files
      .filter((path) => !/\.(parquet|bin|png|gz)$/.test(path))
      .map(readSource)
      .filter(({ text }) => place.test(text))
      .map(({ path }) => path)
    expect(wrong).toEqual([])
  })

  it('leave nothing for later', () => {
    const later = /\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b/
    expect(sources.filter(({ text }) => later.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('switch off no test, no rule and no type', () => {
    const only = /\b(it|test|describe)(\.\w+)*\.(only|skip|todo|skipIf|runIf|fails)\b/
    const silenced = /@ts-(ignor[e]|nochec[k])/
    // In a test it is a claim about types: it fails when there is no error.
    const expected = /@ts-expect-erro[r]/
    expect(sources.filter(({ text }) => only.test(withoutComments(text))).map(({ path }) => path)).toEqual([])
    expect(sources.filter(({ text }) => silenced.test(text)).map(({ path }) => path)).toEqual([])
    expect(sources.filter((file) => !isTest(file) && expected.test(file.text)).map(({ path }) => path)).toEqual([])
  })

  it('are not called utils', () => {
    expect(files.filter((path) => /(^|\/)(utils?|helpers?|misc|common)(\/|\.ts$)/.test(path))).toEqual([])
  })
})

describe('the lock file', () => {
  it('names no registry, so that any mirror will do', () => {
    const { text } = readSource('package-lock.json')
    expect(text.includes('"resolved"')).toBe(false)
  })
})
