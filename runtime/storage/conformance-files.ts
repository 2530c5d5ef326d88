// Holds every file system to the text of contract.ts.

import { deepStrictEqual, rejects, strictEqual } from 'node:assert/strict'
import { bytesOf, range } from './conformance-support.ts'
import type { Claim } from './conformance-support.ts'
import type { FileSystem } from './contract.ts'
import { errorCodeOf } from './errors.ts'
import { joinPath } from './paths.ts'

/** A file system and a folder of it that is there and empty. */
export interface FilesPlace {
  readonly files: FileSystem
  readonly folder: string
}

export const fileSystemClaims: readonly Claim<FilesPlace>[] = [
  {
    claim: 'writeNew creates, and refuses a name that is taken',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.writeNew(path('a'), bytesOf('first'))
      deepStrictEqual(await files.readFile(path('a')), bytesOf('first'))
      await fails(files.writeNew(path('a'), bytesOf('second')), 'EEXIST')
      deepStrictEqual(await files.readFile(path('a')), bytesOf('first'))
      strictEqual(await files.sizeOf(path('a')), 5)
    },
  },
  {
    claim: 'what is missing is ENOENT, except for remove and exists',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await fails(files.readFile(path('a')), 'ENOENT')
      await fails(files.readRange(path('a'), 0, 1), 'ENOENT')
      await fails(files.sizeOf(path('a')), 'ENOENT')
      await fails(files.list(path('a')), 'ENOENT')
      await fails(files.truncate(path('a'), 0), 'ENOENT')
      await fails(files.sync(path('a')), 'ENOENT')
      await fails(files.link(path('a'), path('b')), 'ENOENT')
      await fails(files.rename(path('a'), path('b')), 'ENOENT')
      await fails(files.writeNew(path('no/a'), bytesOf('x')), 'ENOENT')
      await files.remove(path('a'))
      await files.remove(path('no/a'))
      strictEqual(await files.exists(path('a')), false)
      strictEqual(await files.exists(path('no/a')), false)
    },
  },
  {
    claim: 'a range is cut only by the end of the file',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.writeNew(path('a'), bytesOf('0123456789'))
      deepStrictEqual(await files.readRange(path('a'), 2, 3), bytesOf('234'))
      deepStrictEqual(await files.readRange(path('a'), 8, 5), bytesOf('89'))
      deepStrictEqual(await files.readRange(path('a'), 10, 5), new Uint8Array(0))
      deepStrictEqual(await files.readRange(path('a'), 50, 5), new Uint8Array(0))
    },
  },
  {
    claim: 'append creates and adds; truncate cuts, and what is appended then follows the cut',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.append(path('a'), bytesOf('one'))
      await files.append(path('a'), bytesOf('two'))
      await files.truncate(path('a'), 4)
      await files.append(path('a'), bytesOf('!'))
      deepStrictEqual(await files.readFile(path('a')), bytesOf('onet!'))
      await files.truncate(path('a'), 7)
      deepStrictEqual(await files.readFile(path('a')), bytesOf('onet!\0\0'))
      await files.sync(path('a'))
    },
  },
  {
    claim: 'a link shares the content and refuses a name that is taken; removing one name keeps the other',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.writeNew(path('a'), bytesOf('x'))
      await files.link(path('a'), path('b'))
      await fails(files.link(path('a'), path('b')), 'EEXIST')
      await files.remove(path('a'))
      deepStrictEqual(await files.readFile(path('b')), bytesOf('x'))
      deepStrictEqual(await files.list(path('')), ['b'])
    },
  },
  {
    claim: 'of concurrent links to one name exactly one succeeds',
    async holds(make) {
      const { files, path } = await filesIn(make)
      for (const index of range(5)) await files.writeNew(path(`t${index}`), bytesOf(String(index)))
      const answers = await Promise.allSettled(range(5).map((index) => files.link(path(`t${index}`), path('won'))))
      const winners = answers.flatMap((answer, index) => (answer.status === 'fulfilled' ? [index] : []))
      strictEqual(winners.length, 1)
      deepStrictEqual(await files.readFile(path('won')), bytesOf(String(winners[0])))
    },
  },
  {
    claim: 'rename moves, also into another folder, and replaces a file',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.makeDirectory(path('sub'))
      await files.writeNew(path('a'), bytesOf('a'))
      await files.writeNew(path('sub/b'), bytesOf('b'))
      await files.rename(path('a'), path('sub/b'))
      deepStrictEqual(await files.readFile(path('sub/b')), bytesOf('a'))
      strictEqual(await files.exists(path('a')), false)
    },
  },
  {
    claim: 'folders are made with their parents, again without harm, listed sorted, and removed when empty',
    async holds(make) {
      const { files, path } = await filesIn(make)
      await files.makeDirectory(path('x/y/z'))
      await files.makeDirectory(path('x/y'))
      await files.writeNew(path('x/y/b'), bytesOf('b'))
      await files.writeNew(path('x/y/a'), bytesOf('a'))
      deepStrictEqual(await files.list(path('x/y')), ['a', 'b', 'z'])
      await fails(files.list(path('x/y/a')), 'ENOTDIR')
      await fails(files.remove(path('x/y')), 'ENOTEMPTY')
      await files.remove(path('x/y/z'))
      deepStrictEqual(await files.list(path('x/y')), ['a', 'b'])
      await files.sync(path('x/y'))
      strictEqual(await files.exists(path('x')), true)
    },
  },
  {
    claim: 'answers are copies',
    async holds(make) {
      const { files, path } = await filesIn(make)
      const mine = Buffer.from('state')
      await files.writeNew(path('a'), mine)
      mine.fill(0)
      const answer = await files.readFile(path('a'))
      answer.fill(0)
      deepStrictEqual(await files.readFile(path('a')), bytesOf('state'))
    },
  },
]

async function filesIn(make: () => Promise<FilesPlace>) {
  const { files, folder } = await make()
  return { files, path: (name: string) => (name === '' ? folder : joinPath(folder, name)) }
}

async function fails(call: Promise<unknown>, code: string): Promise<void> {
  await rejects(call, (error) => {
    strictEqual(errorCodeOf(error), code)
    return true
  })
}
