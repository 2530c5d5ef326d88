import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Figure } from '../figure.ts'
import { comparedWith, emitCompared, inBothModes, peerOrWord } from './peer.ts'
import type { PeerAnswer } from './peer.ts'

const word = 'MILLRACE_PEERS is not set: no peer is measured, and no ratio printed.'

const size: Figure = { bench: 'snapshot', case: '10 keys', metric: 'size', value: 10, unit: 'bytes' }

describe('a benchmark without $MILLRACE_PEERS', () => {
  it('says once that no ratio is printed, and prints none', async () => {
    const said: string[] = []
    expect(peerOrWord(undefined, (text) => said.push(text))).toBeUndefined()
    expect(said).toEqual([word])
    const modes = await inBothModes(undefined, { kind: 'keyed' })
    const printed: string[] = []
    const print = (one: Figure): void => void printed.push(JSON.stringify(one))
    emitCompared(print, size, { modes, theirs: ({ ck1_state_bytes }) => ck1_state_bytes, better: 'lower' })
    expect(printed).toEqual(['{"bench":"snapshot","case":"10 keys","metric":"size","value":10,"unit":"bytes"}'])
  })

  it('has no other way to a ratio', async () => {
    const folder = new URL('..', import.meta.url)
    const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && name !== 'figure.ts')
    const texts = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))
    const comparing = names.filter((_, index) => /measure\/peer\.ts/.test(texts[index]!))
    expect(comparing).toEqual(['recovery.ts', 'snapshot.ts', 'throughput.ts'])
    for (const [index, name] of names.entries()) {
      const calls = texts[index]!.match(/\bpeerOrWord\(options\.peers\)/g) ?? []
      expect([name, calls.length]).toEqual([name, comparing.includes(name) ? 1 : 0])

      if (comparing.includes(name)) expect(texts[index]).not.toMatch(/\bratio[:,]/)
    }
  })
})

describe('a benchmark with $MILLRACE_PEERS', () => {
  it('measures it without and with object reuse, one after the other, and prints a line for each', async () => {
    let busy = 0
    const peer = async ({ reuse }: Readonly<Record<string, string | number | boolean>>): Promise<PeerAnswer> => {
      expect(++busy).toBe(1)
      await Promise.resolve()
      busy--
      return { ck1_state_bytes: reuse === true ? 40 : 20 } as PeerAnswer
    }
    const modes = await inBothModes(peer, { kind: 'keyed', keys: 10 })
    const printed: Figure[] = []
    const print = (one: Figure): void => void printed.push(one)
    emitCompared(print, size, { modes, theirs: ({ ck1_state_bytes }) => ck1_state_bytes, better: 'lower' })
    expect(printed).toEqual([
      { ...size, peer: 'Flink', peerValue: 20, ratio: 2 },
      { ...size, peer: 'Flink, object reuse', peerValue: 40, ratio: 4 },
    ])
    printed.length = 0
    emitCompared(print, size, { modes, theirs: () => undefined, better: 'lower' })
    expect(printed).toEqual([size])
  })

  it('asks the peer there, says nothing, and gives a ratio that is above 1 where ours is better', async () => {
    const peers = await mkdtemp(join(tmpdir(), 'millrace-peers-'))
    try {
      expect(() => peerOrWord(peers, () => undefined)).toThrow(/^MILLRACE_PEERS is .*, but there is no .*run1\.sh\.$/)
      await mkdir(join(peers, 'flink'))
      const script = '#!/bin/sh\necho "warming up"\necho "{\\"events_s\\": 50, \\"asked\\": \\"$*\\"}"\n'
      await writeFile(join(peers, 'flink/run1.sh'), script, { mode: 0o755 })
      const said: string[] = []
      const answer = await peerOrWord(peers, (text) => said.push(text))!({ kind: 'keyed', p: 2 })
      expect(answer).toEqual({ events_s: 50, asked: 'kind=keyed p=2' })
      expect(said).toEqual([])
      expect(comparedWith(100, answer.events_s, { name: 'Flink', better: 'higher' })).toEqual({
        peer: 'Flink',
        peerValue: 50,
        ratio: 2,
      })
      expect(comparedWith(100, 50, { name: 'Flink, object reuse', better: 'lower' })).toEqual({
        peer: 'Flink, object reuse',
        peerValue: 50,
        ratio: 0.5,
      })
    } finally {
      await rm(peers, { recursive: true, force: true })
    }
  })
})
