import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../testkit/manual-clock.ts'
import { errorCodeOf } from './errors.ts'
import { MemoryFiles } from './memory-files.ts'
import type { FileFaults } from './memory-files.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const bytes = (value: string) => new TextEncoder().encode(value)

/** What was left in many crashes of the same history. */
async function outcomes(
  history: (files: MemoryFiles) => Promise<void>,
  look: (files: MemoryFiles) => Promise<string>,
): Promise<Set<string>> {
  const seen = new Set<string>()
  for (let seed = 1; seed <= 200; seed++) {
    const files = new MemoryFiles()
    const random = new SeededRandom(seed)
    await history(files)
    files.crash(() => random.next())
    seen.add(await look(files))
  }
  return seen
}

const contentOf = (path: string) => async (files: MemoryFiles) =>
  (await files.exists(path)) ? text(await files.readFile(path)) : 'absent'

describe('a crash of memory files', () => {
  it('keeps what was synced: content and entry', async () => {
    const seen = await outcomes(async (files) => {
      await files.makeDirectory('d')
      await files.sync('.')
      await files.writeNew('d/a', bytes('whole'))
      await files.sync('d/a')
      await files.sync('d')
    }, contentOf('d/a'))
    expect(seen).toEqual(new Set(['whole']))
  })

  it('may lose the entry of a file whose content alone was synced', async () => {
    const seen = await outcomes(async (files) => {
      await files.writeNew('a', bytes('whole'))
      await files.sync('a')
    }, contentOf('a'))
    expect(seen).toEqual(new Set(['whole', 'absent']))
  })

  it('may lose, keep or tear content that was not synced', async () => {
    const seen = await outcomes(async (files) => {
      await files.writeNew('a', bytes('abc'))
      await files.sync('.')
    }, contentOf('a'))
    expect(seen).toContain('')
    expect(seen).toContain('abc')
    expect(seen).toContain('ab')
    expect(seen).toContain('a\0\0')
    expect(seen).not.toContain('absent')
  })

  it('never touches the synced beginning of a file that was appended to', async () => {
    const seen = await outcomes(async (files) => {
      await files.writeNew('a', bytes('old'))
      await files.sync('a')
      await files.sync('.')
      await files.append('a', bytes('new'))
    }, contentOf('a'))
    for (const content of seen) expect(content.startsWith('old')).toBe(true)
    expect(seen.size).toBeGreaterThan(3)
  })

  it('may bring back what was cut off without a sync', async () => {
    const seen = await outcomes(async (files) => {
      await files.writeNew('a', bytes('abcdef'))
      await files.sync('a')
      await files.sync('.')
      await files.truncate('a', 3)
      await files.append('a', bytes('X'))
    }, contentOf('a'))
    expect(seen).toContain('abcdef')
    expect(seen).toContain('abcX')
  })

  it('leaves a renamed file under one of its names, never under none or both', async () => {
    const seen = await outcomes(
      async (files) => {
        await files.makeDirectory('from')
        await files.makeDirectory('to')
        await files.writeNew('from/a', bytes('x'))
        for (const path of ['from/a', 'from', '.']) await files.sync(path)
        await files.rename('from/a', 'to/b')
      },
      async (files) => `${await contentOf('from/a')(files)} ${await contentOf('to/b')(files)}`,
    )
    expect(seen).toEqual(new Set(['x absent', 'absent x']))
  })

  it('keeps a rename of which one folder was synced', async () => {
    const seen = await outcomes(
      async (files) => {
        await files.makeDirectory('from')
        await files.makeDirectory('to')
        await files.sync('.')
        await files.writeNew('from/a', bytes('x'))
        await files.sync('from/a')
        await files.rename('from/a', 'to/b')
        await files.sync('to')
      },
      async (files) => `${await contentOf('from/a')(files)} ${await contentOf('to/b')(files)}`,
    )
    expect(seen).toEqual(new Set(['absent x']))
  })

  it('may undo a removal that was not synced', async () => {
    const seen = await outcomes(async (files) => {
      await files.writeNew('a', bytes('x'))
      await files.sync('a')
      await files.sync('.')
      await files.remove('a')
    }, contentOf('a'))
    expect(seen).toEqual(new Set(['x', 'absent']))
  })

  it('may lose a whole folder whose own entry was not synced', async () => {
    const seen = await outcomes(async (files) => {
      await files.makeDirectory('d')
      await files.writeNew('d/a', bytes('x'))
      await files.sync('d/a')
      await files.sync('d')
    }, contentOf('d/a'))
    expect(seen).toEqual(new Set(['x', 'absent']))
  })

  it('decides for each thing on its own', async () => {
    const seen = await outcomes(
      async (files) => {
        for (const name of ['a', 'b']) {
          await files.writeNew(name, bytes(name))
          await files.sync(name)
        }
      },
      async (files) => (await files.list('.')).join(''),
    )
    expect(seen).toEqual(new Set(['', 'a', 'b', 'ab']))
  })
})

describe('faults of memory files', () => {
  it('happen before anything, after half of the bytes, or after all of it', async () => {
    let faults: FileFaults = () => undefined
    const files = new MemoryFiles((operation, path) => faults(operation, path))
    const failing = async (effect: 'none' | 'half' | 'done') => {
      faults = (operation) => (operation === 'writeNew' ? { code: 'ENOSPC', effect } : undefined)
      const code = await files.writeNew(effect, bytes('1234')).then(() => undefined, errorCodeOf)
      expect(code).toBe('ENOSPC')
      return contentOf(effect)(files)
    }
    expect(await failing('none')).toBe('absent')
    expect(await failing('half')).toBe('12')
    expect(await failing('done')).toBe('1234')
  })
})
