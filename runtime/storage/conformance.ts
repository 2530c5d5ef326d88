// Holds every object store, HEAD store and file system to the text of contract.ts. Each claim runs on a fresh place:
//   for (const { claim, holds } of objectStoreClaims) it(claim, () => holds(makeStore))

import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict'
import type { FileSystem, HeadStore, ObjectKey, ObjectStore } from './contract.ts'
import { errorCodeOf } from './errors.ts'
import { checkpointDataKey, joinPath, manifestKey, sharedDataKey } from './paths.ts'
import { checkpointId } from '../base/ids.ts'

export interface Claim<Place> {
  readonly claim: string
  readonly holds: (makePlace: () => Promise<Place>) => Promise<void>
}

/** Two handles of one store, as two processes have them. */
export interface StorePair<Store> {
  readonly one: Store
  readonly other: Store
}

const data = checkpointDataKey(checkpointId(7), 'a')
const metadata = manifestKey(checkpointId(7), 'checkpoint')

export const objectStoreClaims: readonly Claim<StorePair<ObjectStore>>[] = [
  {
    claim: 'what is created reads back from any handle',
    async holds(make) {
      const { one, other } = await make()
      strictEqual(await one.create(data, bytesOf('state')), 'created')
      deepStrictEqual(await other.read(data), bytesOf('state'))
    },
  },
  {
    claim: 'an empty object is an object',
    async holds(make) {
      const { one } = await make()
      strictEqual(await one.create(data, new Uint8Array(0)), 'created')
      deepStrictEqual(await one.read(data), new Uint8Array(0))
      deepStrictEqual(await one.readRange(data, 0, 0), new Uint8Array(0))
      deepStrictEqual(await one.list(''), [data])
    },
  },
  {
    claim: 'a name that is taken keeps its content',
    async holds(make) {
      const { one, other } = await make()
      await one.create(data, bytesOf('first'))
      strictEqual(await other.create(data, bytesOf('second')), 'exists')
      deepStrictEqual(await one.read(data), bytesOf('first'))
    },
  },
  {
    claim: 'of many concurrent creations under one name exactly one succeeds, and its content stays',
    async holds(make) {
      const { one, other } = await make()
      const answers = await Promise.all(
        range(10).map((index) => (index % 2 === 0 ? one : other).create(data, bytesOf(`writer ${index}`))),
      )
      const winners = answers.flatMap((answer, index) => (answer === 'created' ? [index] : []))
      strictEqual(winners.length, 1)
      deepStrictEqual(await one.read(data), bytesOf(`writer ${winners[0]}`))
    },
  },
  {
    claim: 'concurrent creations under many names of one folder all succeed',
    async holds(make) {
      const { one, other } = await make()
      const keys = range(12).map((index) => checkpointDataKey(checkpointId(3), `part-${index}`))
      const answers = await Promise.all(
        keys.map((key, index) => (index % 2 === 0 ? one : other).create(key, bytesOf(key))),
      )
      deepStrictEqual(new Set(answers), new Set(['created']))
      deepStrictEqual(await one.list('chk-3/'), keys.toSorted())
    },
  },
  {
    claim: 'absent is undefined, for whole objects and for ranges',
    async holds(make) {
      const { one } = await make()
      strictEqual(await one.read(data), undefined)
      strictEqual(await one.readRange(data, 0, 4), undefined)
      deepStrictEqual(await one.list(''), [])
    },
  },
  {
    claim: 'a range gives exactly its bytes',
    async holds(make) {
      const { one } = await make()
      await one.create(data, bytesOf('0123456789'))
      deepStrictEqual(await one.readRange(data, 0, 10), bytesOf('0123456789'))
      deepStrictEqual(await one.readRange(data, 3, 4), bytesOf('3456'))
      deepStrictEqual(await one.readRange(data, 9, 1), bytesOf('9'))
    },
  },
  {
    claim: 'a range past the end is an error and never a short answer',
    async holds(make) {
      const { one } = await make()
      await one.create(data, bytesOf('0123456789'))
      await rejects(one.readRange(data, 8, 4), /MR-S03/)
      await rejects(one.readRange(data, 20, 1), /MR-S03/)
    },
  },
  {
    claim: 'later changes of the caller’s buffer, or of an answer, change nothing stored',
    async holds(make) {
      const { one } = await make()
      const mine = Buffer.from('state')
      await one.create(data, mine)
      mine.fill(0)
      const answer = await one.read(data)
      answer?.fill(0)
      deepStrictEqual(await one.read(data), bytesOf('state'))
    },
  },
  {
    claim: 'deleting removes what is there and forgives what is not',
    async holds(make) {
      const { one, other } = await make()
      await one.create(data, bytesOf('state'))
      await one.create(metadata, bytesOf('manifest'))
      await other.delete([data, sharedDataKey('never-there')])
      strictEqual(await one.read(data), undefined)
      deepStrictEqual(await one.list(''), [metadata])
      await one.delete([data, metadata])
      await one.delete([])
      deepStrictEqual(await other.list(''), [])
    },
  },
  {
    claim: 'a folder that was emptied takes new objects',
    async holds(make) {
      const { one, other } = await make()
      await one.create(sharedDataKey('a'), bytesOf('a'))
      await other.delete([sharedDataKey('a')])
      strictEqual(await one.create(sharedDataKey('b'), bytesOf('b')), 'created')
      deepStrictEqual(await other.list(''), [sharedDataKey('b')])
    },
  },
  {
    claim: 'a listing is sorted and holds the keys that begin with the prefix, whole segments or not',
    async holds(make) {
      const { one } = await make()
      const keys = [
        metadata,
        data,
        manifestKey(checkpointId(70), 'checkpoint'),
        manifestKey(checkpointId(8), 'savepoint'),
        sharedDataKey('x'),
        sharedDataKey('xy'),
      ]
      for (const key of keys) await one.create(key, bytesOf(key))
      deepStrictEqual(await one.list(''), keys.toSorted())
      deepStrictEqual(await one.list('chk-7'), keys.filter((key) => key.startsWith('chk-7')).toSorted())
      deepStrictEqual(await one.list('chk-7/'), [metadata, data].toSorted())
      deepStrictEqual(await one.list('shared/x'), [sharedDataKey('x'), sharedDataKey('xy')])
      deepStrictEqual(await one.list('shared/xy'), [sharedDataKey('xy')])
      deepStrictEqual(await one.list('nothing/like/this'), [])
    },
  },
  {
    claim: 'a few megabytes go through whole',
    async holds(make) {
      const { one, other } = await make()
      const large = new Uint8Array(3_000_000)
      for (let index = 0; index < large.length; index++) large[index] = index * 31
      await one.create(data, large)
      ok(Buffer.from((await other.read(data)) ?? new Uint8Array(0)).equals(large))
      deepStrictEqual(await other.readRange(data, 2_999_000, 1000), large.slice(2_999_000))
    },
  },
]

export const headStoreClaims: readonly Claim<StorePair<HeadStore>>[] = [
  {
    claim: 'there is none before the first write',
    async holds(make) {
      strictEqual(await (await make()).one.read(), undefined)
    },
  },
  {
    claim: 'a won swap is the newest, with the version that was told',
    async holds(make) {
      const { one, other } = await make()
      const first = await win(one, undefined, '1')
      deepStrictEqual(await other.read(), { version: first, bytes: bytesOf('1') })
      const second = await win(other, first, '2')
      deepStrictEqual(await one.read(), { version: second, bytes: bytesOf('2') })
    },
  },
  {
    claim: 'a first write loses when there is a HEAD',
    async holds(make) {
      const { one, other } = await make()
      await win(one, undefined, '1')
      deepStrictEqual(await other.swap(undefined, bytesOf('other')), { outcome: 'lost' })
      deepStrictEqual((await one.read())?.bytes, bytesOf('1'))
    },
  },
  {
    claim: 'a swap of an older version loses',
    async holds(make) {
      const { one, other } = await make()
      const first = await win(one, undefined, '1')
      await win(one, first, '2')
      deepStrictEqual(await other.swap(first, bytesOf('other')), { outcome: 'lost' })
      deepStrictEqual((await one.read())?.bytes, bytesOf('2'))
    },
  },
  {
    claim: 'a version is never used again, not even for equal bytes',
    async holds(make) {
      const { one } = await make()
      const first = await win(one, undefined, 'same')
      const second = await win(one, first, 'other')
      const third = await win(one, second, 'same')
      strictEqual(new Set([first.token, second.token, third.token]).size, 3)
      deepStrictEqual(await one.swap(first, bytesOf('late')), { outcome: 'lost' })
    },
  },
  {
    claim: 'of many concurrent swaps of one version exactly one wins',
    async holds(make) {
      const { one, other } = await make()
      let version = await win(one, undefined, 'begin')
      for (const round of range(5)) {
        const answers = await Promise.all(
          range(6).map((index) => (index % 2 === 0 ? one : other).swap(version, bytesOf(`${round}.${index}`))),
        )
        const winners = answers.flatMap((answer, index) =>
          answer.outcome === 'won' ? [{ index, version: answer.version }] : [],
        )
        strictEqual(winners.length, 1)
        const read = await other.read()
        deepStrictEqual(read?.bytes, bytesOf(`${round}.${winners[0]!.index}`))
        deepStrictEqual(read.version, winners[0]!.version)
        version = winners[0]!.version
      }
    },
  },
  {
    claim: 'hundreds of swaps leave one HEAD, the newest',
    async holds(make) {
      const { one, other } = await make()
      let version = await win(one, undefined, '0')
      for (const round of range(250)) version = await win(round % 2 === 0 ? one : other, version, String(round))
      deepStrictEqual(await one.read(), { version, bytes: bytesOf('249') })
    },
  },
]

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

async function win(store: HeadStore, expected: { readonly token: string } | undefined, text: string) {
  const answer = await store.swap(expected, bytesOf(text))
  ok(answer.outcome === 'won', `the swap to ${text} ${answer.outcome}`)
  return answer.version
}

async function fails(call: Promise<unknown>, code: string): Promise<void> {
  await rejects(call, (error) => {
    strictEqual(errorCodeOf(error), code)
    return true
  })
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

function bytesOf(text: string | ObjectKey): Uint8Array {
  return new TextEncoder().encode(text)
}
