// kill -9 of a whole `millrace run`, and the same command again at once.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Beacon } from '../jobs/count-sink.ts'
import { until } from './local-run.ts'

const checkpointIntervalMs = 1_000
/** From when the state is full until the kill: several checkpoints. */
const beforeKillMs = 6_000

export interface KillRequest {
  readonly keys: number
  readonly parallelism: number
  readonly rounds: number
}

/** Median time from the kill to the first record at a sink of the next process, ms. */
export async function recoverFromKill({ keys, parallelism, rounds }: KillRequest): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kill-'))
  const beaconFile = join(folder, 'beacon.json')
  const command = [
    fileURLToPath(new URL('../../runtime/cli/main.ts', import.meta.url)),
    'run',
    fileURLToPath(new URL('../jobs/keyed.ts', import.meta.url)),
    '--no-freeze',
    `--folder=${folder}`,
    `--args=${JSON.stringify({ keys, value: 'object', beacon: beaconFile })}`,
    `--parallelism=${parallelism}`,
    `--checkpoint-interval=${checkpointIntervalMs}`,
  ]
  const start = () => spawn(process.execPath, command, { stdio: ['ignore', 'ignore', 'inherit'] })
  const beacon = (): Beacon | undefined =>
    existsSync(beaconFile) ? (JSON.parse(readFileSync(beaconFile, 'utf8')) as Beacon) : undefined
  const recoveries: number[] = []
  let running = start()
  try {
    // Each key's first record counts 1; when one counts 2, all keys have been seen.
    await until(() => beacon() !== undefined, 'the first record of the first process')
    await sleep(beforeKillMs)
    for (let round = 0; round < rounds; round++) {
      rmSync(beaconFile)
      const killedAtMs = Date.now()
      running.kill('SIGKILL')
      await once(running, 'exit')
      running = start()
      await until(() => beacon() !== undefined, 'the first record after the kill')
      const { firstAtMs, value } = beacon()!
      if (value < 2) throw new Error(`the first record after the kill counts ${value}: nothing was restored`)
      recoveries.push(firstAtMs - killedAtMs)
      await sleep(beforeKillMs)
    }
  } finally {
    running.kill('SIGKILL')
    await once(running, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  return recoveries.toSorted((left, right) => left - right)[recoveries.length >> 1]!
}
