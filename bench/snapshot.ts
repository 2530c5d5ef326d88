// Checkpoints of a keyed state of 100-byte values: how long they take, and how long they hold up the slots' event loops.

import type { Figure } from './figure.ts'
import { inChild } from './measure/child-process.ts'
import type { MeasureOptions } from './measure/options.ts'
import { emitCompared, inBothModes, peerOrWord } from './measure/peer.ts'
import type { PeerAnswer } from './measure/peer.ts'
import type { SnapshotRequest, SnapshotResult } from './measure/snapshot-child.ts'

/** Checkpoints under load. */
const rounds = 5
const deadlineMs = 300_000

export async function run(emit: (figure: Figure) => void, options: MeasureOptions): Promise<void> {
  const { keys, warmSeconds, measureSeconds } = options
  const peer = peerOrWord(options.peers)
  const asked = { kind: 'keyed', keys, p: 1, warm: warmSeconds, meas: measureSeconds, fullckpt: false }
  const modes = await inBothModes(peer, asked)
  for (const value of ['object', 'bytes'] as const) {
    const request: SnapshotRequest = { keys, value, parallelism: 1, warmSeconds, rounds }
    const ours = await inChild<SnapshotResult>('snapshot-child.ts', request, deadlineMs)
    const place = `${keys} keys, ${value === 'bytes' ? 'bytes' : 'objects'}`
    const figure = (
      metric: string,
      value: number,
      unit: string,
      theirs: (answer: PeerAnswer) => number | undefined = () => undefined,
    ): void =>
      emitCompared(emit, { bench: 'snapshot', case: place, metric, value, unit }, { modes, theirs, better: 'lower' })
    figure('checkpoint at rest', ours.atRestMs, 'ms', ({ ck1_e2e_ms }) => ck1_e2e_ms)
    figure('checkpoint under load', ours.underLoadMs, 'ms', ({ ckload_e2e_ms }) => ckload_e2e_ms)
    figure('size', ours.bytes, 'bytes', ({ ck1_state_bytes }) => ck1_state_bytes)
    figure('event-loop stall during checkpoints under load, p99', ours.stallP99Ms, 'ms')
    figure('event-loop stall during checkpoints under load, longest', ours.stallMaxMs, 'ms')
    figure('longest turn during checkpoints under load, processor time', ours.turnCpuMaxMs, 'ms')
    figure('event-loop stall under load alone, longest', ours.quietStallMaxMs, 'ms')
  }
}
