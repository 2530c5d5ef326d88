import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ownModule } from './own-modules.ts'

const runtime = new URL('../../', import.meta.url)
const zod = dirname(createRequire(import.meta.url).resolve('zod'))
const importedFiles = /^(?:import|export)\b[^'"]*from ['"](\.[^'"]+)['"]/gm

describe('modules that are resolved without the file system', () => {
  it('are those files that the runtime imports by their names', () => {
    const parents = filesIn(fileURLToPath(runtime), '.ts')
    const found = importsOf(parents).map(({ specifier, parent }) => ownModule(specifier, parent))
    expect(found.length).toBeGreaterThan(500)
    for (const module of found) {
      expect(module?.format).toBe('module-typescript')
      expect(existsSync(fileURLToPath(module!.url))).toBe(true)
    }
  })

  it('are those of zod, which is a package of modules', () => {
    expect(JSON.parse(readFileSync(join(zod, 'package.json'), 'utf8'))).toMatchObject({ type: 'module' })
    const found = importsOf(filesIn(zod, '.js')).map(({ specifier, parent }) => ownModule(specifier, parent))
    expect(found.length).toBeGreaterThan(100)
    for (const module of found) {
      expect(module?.format).toBe('module')
      expect(existsSync(fileURLToPath(module!.url))).toBe(true)
    }
  })

  it.each([
    ['zod', new URL('api.ts', runtime).href],
    ['node:fs', new URL('api.ts', runtime).href],
    ['./other', new URL('api.ts', runtime).href],
    ['./other.cjs', pathToFileURL(join(zod, 'index.js')).href],
    ['./other.js', pathToFileURL(join(zod, 'index.cjs')).href],
    ['./other.ts', 'file:///elsewhere/job.ts'],
    ['./other.js', 'file:///elsewhere/job.js'],
    ['./job.ts', undefined],
  ])('are not %s, imported by %s', (specifier, parent) => {
    expect(ownModule(specifier, parent)).toBeUndefined()
  })
})

function importsOf(files: readonly string[]): { specifier: string; parent: string }[] {
  return files.flatMap((file) =>
    Array.from(readFileSync(file, 'utf8').matchAll(importedFiles), ([, specifier]) => ({
      specifier: specifier!,
      parent: pathToFileURL(file).href,
    })),
  )
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(
      (name) => name.endsWith(ending) && !name.endsWith('.d.ts') && !/(^|\/)(src|node_modules|testdata)\//.test(name),
    )
    .map((name) => join(folder, name))
}
