// Holds every object store to the text of contract.ts.

import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict'
import { checkpointId } from '../base/ids.ts'
import { bytesOf, range } from './conformance-support.ts'
import type { Claim, StorePair } from './conformance-support.ts'
import type { ObjectStore } from './contract.ts'
import { snapshotDataKey, manifestKey, sharedDataKey } from './paths.ts'

const data = snapshotDataKey(checkpointId(7), 'checkpoint', 'a')
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
      const keys = range(12).map((index) => snapshotDataKey(checkpointId(3), 'checkpoint', `part-${index}`))
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
