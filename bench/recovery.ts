// How long a failure keeps a job from going on: an exception in a user function, and kill -9 of the whole process.

import type { Figure } from './figure.ts'
import { inChild } from './measure/child-process.ts'
import { recoverFromKill } from './measure/kill-run.ts'
import type { MeasureOptions } from './measure/options.ts'
import { emitCompared, inBothModes, peerOrWord } from './measure/peer.ts'
import type { PeerAnswer } from './measure/peer.ts'
import type { RecoveryRequest, RecoveryResult } from './measure/recovery-child.ts'

const parallelism = 2
const rounds = 5
const deadlineMs = 300_000

export async function run(emit: (figure: Figure) => void, options: MeasureOptions): Promise<void> {
  const peer = peerOrWord(options.peers)
  for (const keys of [100, options.keys]) {
    const request: RecoveryRequest = { keys, value: 'object', parallelism, rounds }
    const ours = await inChild<RecoveryResult>('recovery-child.ts', request, deadlineMs)
    const modes = await inBothModes(peer, { kind: 'recovery', keys, p: parallelism, reps: rounds })
    const thrown = `exception, ${keys} keys`
    const figure = (metric: string, value: number, theirs: (answer: PeerAnswer) => number): void =>
      emitCompared(
        emit,
        { bench: 'recovery', case: thrown, metric, value, unit: 'ms' },
        { modes, theirs, better: 'lower' },
      )
    figure('to the first record', ours.firstMs, ({ to_first_med }) => to_first_med)
    figure('to the first record of all subtasks', ours.allSubtasksMs, ({ to_first_all_med }) => to_first_all_med)
    const killed = await recoverFromKill({ keys, parallelism, rounds: 3 })
    const place = `kill -9 and the same command again, ${keys} keys`
    const metric = 'to the first record at a sink'
    emit({ bench: 'recovery', case: place, metric, value: killed.ms, unit: 'ms', timeline: killed.timeline })
    const cpu = 'processor time until then'
    emit({ bench: 'recovery', case: place, metric: cpu, value: killed.cpuMs, unit: 'ms' })
  }
}
