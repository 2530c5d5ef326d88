// Holds every HEAD store to the text of contract.ts.

import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { bytesOf, range } from './conformance-support.ts'
import type { Claim, StorePair } from './conformance-support.ts'
import type { HeadStore } from './contract.ts'

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

async function win(store: HeadStore, expected: { readonly token: string } | undefined, text: string) {
  const answer = await store.swap(expected, bytesOf(text))
  ok(answer.outcome === 'won', `the swap to ${text} ${answer.outcome}`)
  return answer.version
}
