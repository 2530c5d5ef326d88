// kill -9 of a whole `millrace run`, and the same command again at once.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Beacon } from '../jobs/count-sink.ts'
import { readWhole } from '../jobs/timeline.ts'
import type { Timeline } from '../jobs/timeline.ts'
import { until } from './local-run.ts'

const checkpointIntervalMs = 1_000
/** From a checkpoint of the full state, or from a recovery, until the kill: several checkpoints, and spare threads. */
const beforeKillMs = 6_000

export interface KillRequest {
  readonly keys: number
  readonly parallelism: number
  readonly rounds: number
}

export interface Recovery {
  /** From the kill to the first record at a sink of the next process. */
  readonly ms: number
  /** Processor time of the next process until then. */
  readonly cpuMs: number
  /** From the kill to each step on the way there, ms; `exited`: the killed process is gone. */
  readonly timeline: Timeline & { readonly exited: number }
}

/** The median of the rounds. */
export async function recoverFromKill({ keys, parallelism, rounds }: KillRequest): Promise<Recovery> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kill-'))
  const beaconFile = join(folder, 'beacon.json')
  const command = [
    fileURLToPath(new URL('../../runtime/cli/main.ts', import.meta.url)),
    'run',
    fileURLToPath(new URL('../jobs/keyed.ts', import.meta.url)),
    '--skip-types',
    '--no-freeze',
    `--folder=${folder}`,
    `--args=${JSON.stringify({ keys, value: 'object', beacon: beaconFile })}`,
    `--parallelism=${parallelism}`,
    `--checkpoint-interval=${checkpointIntervalMs}`,
  ]
  const start = () => spawn(process.execPath, command, { stdio: ['ignore', 'ignore', 'inherit'] })
  const recoveries: Recovery[] = []
  let running = start()
  const untilLit = (file: string, what: string): Promise<void> =>
    until(() => {
      if (running.exitCode !== null) throw new Error(`the job ended before ${what}`)
      return existsSync(file)
    }, what)
  try {
    // Each key's first record counts 1; once one counts 2, all keys have been seen.
    await untilLit(`${beaconFile}.kept`, 'a checkpoint of the full state')
    await sleep(beforeKillMs)
    for (let round = 0; round < rounds; round++) {
      rmSync(beaconFile)
      const killedAtMs = Date.now()
      running.kill('SIGKILL')
      await once(running, 'exit')
      const exitedAtMs = Date.now()
      running = start()
      await untilLit(beaconFile, 'the first record after the kill')
      const { firstAtMs, value, timeline, cpuMs } = readWhole(beaconFile) as Beacon
      if (value < 2) throw new Error(`the first record after the kill counts ${value}: nothing was restored`)
      const marks = { exited: exitedAtMs, ...(readWhole(`${beaconFile}.main`) as Timeline), ...timeline }
      recoveries.push({ ms: firstAtMs - killedAtMs, cpuMs, timeline: since(killedAtMs, marks) })
      await sleep(beforeKillMs)
    }
  } finally {
    if (running.kill('SIGKILL')) await once(running, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  return recoveries.toSorted((left, right) => left.ms - right.ms)[recoveries.length >> 1]!
}

function since<Marks extends object>(fromMs: number, marks: Marks): Marks {
  const each = Object.entries(marks) as [string, number][]
  return Object.fromEntries(each.map(([step, atMs]) => [step, Math.round(atMs - fromMs)])) as Marks
}
