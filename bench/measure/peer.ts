// The peer: Apache Flink, compiled in $MILLRACE_PEERS/flink, one measurement in a fresh JVM.

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Figure } from '../figure.ts'

const run = promisify(execFile)
const deadlineMs = 600_000

/** Of its answer what is asked for here. */
export interface PeerAnswer {
  readonly events_s: number
  /** Per second of processor time of the whole process. */
  readonly events_s_core: number
  readonly ck1_e2e_ms: number
  readonly ckload_e2e_ms: number
  readonly ck1_state_bytes: number
  readonly to_first_med: number
  readonly to_first_all_med: number
  readonly error?: string
}

export type Peer = (request: Readonly<Record<string, string | number | boolean>>) => Promise<PeerAnswer>

/** undefined without $MILLRACE_PEERS, which is said; throws when nothing is there. */
export function peerOrWord(
  peers: string | undefined,
  say: (text: string) => void = (text) => console.error(text),
): Peer | undefined {
  const peer = findPeer(peers)
  if (peer === undefined) say('MILLRACE_PEERS is not set: no peer is measured, and no ratio printed.')
  return peer
}

function findPeer(peers: string | undefined): Peer | undefined {
  if (peers === undefined) return undefined
  const script = join(peers, 'flink', 'run1.sh')
  if (!existsSync(script)) throw new Error(`MILLRACE_PEERS is ${peers}, but there is no ${script}.`)
  return async (request) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-peer-'))
    try {
      const args = Object.entries(request).map(([name, value]) => `${name}=${value}`)
      const { stdout } = await run(script, args, { cwd: folder, timeout: deadlineMs })
      const last = stdout.trimEnd().split('\n').at(-1)!
      const answer = (last === '' ? { error: 'no answer' } : JSON.parse(last)) as PeerAnswer
      if (answer.error !== undefined) throw new Error(`The peer failed at ${args.join(' ')}: ${answer.error}`)
      return answer
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Of one measurement: under its name, and what it gave. */
export interface PeerMode {
  readonly name: string
  readonly answer: PeerAnswer
}

/** The same request without and with Flink's object reuse, in this order; [] without a peer. */
export async function inBothModes(
  peer: Peer | undefined,
  request: Readonly<Record<string, string | number | boolean>>,
): Promise<readonly PeerMode[]> {
  if (peer === undefined) return []
  const modes: PeerMode[] = []
  // One after the other: each needs the machine.
  for (const reuse of [false, true])
    modes.push({ name: reuse ? 'Flink, object reuse' : 'Flink', answer: await peer({ ...request, reuse }) })
  return modes
}

/** A figure once for each mode, or once alone. */
export function emitCompared(
  emit: (figure: Figure) => void,
  figure: Figure,
  {
    modes,
    theirs,
    better,
  }: {
    readonly modes: readonly PeerMode[]
    /** Their figure; undefined: the peer has none of the kind. */
    readonly theirs: (answer: PeerAnswer) => number | undefined
    readonly better: 'higher' | 'lower'
  },
): void {
  const compared = modes.flatMap(({ name, answer }) => {
    const value = theirs(answer)
    return value === undefined ? [] : [comparedWith(figure.value, value, { name, better })]
  })
  for (const one of compared.length === 0 ? [{}] : compared) emit({ ...figure, ...one })
}

/** What a figure says of the peer's. A ratio above 1 is good, whatever the unit. */
export function comparedWith(
  value: number,
  peerValue: number,
  { name, better }: { readonly name: string; readonly better: 'higher' | 'lower' },
): Required<Pick<Figure, 'peer' | 'peerValue' | 'ratio'>> {
  return { peer: name, peerValue, ratio: better === 'higher' ? value / peerValue : peerValue / value }
}
