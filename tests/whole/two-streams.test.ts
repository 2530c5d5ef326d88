// A job that reads two streams in every way there is, in real processes that are killed: its results are those of loops over the input.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import { leftKey, nearMs, numberOf, rightKey, rulesCount, splits, stepMs, windowMs } from './jobs/two-streams-shape.ts'
import type { Numbered } from './jobs/two-streams-shape.ts'
import { JobProcess } from './support/job-process.ts'
import { hurry, linesOf } from './support/ledger-folder.ts'

const perSplit = 2_000

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-two-streams-'))
})
afterAll(async () => {
  await JobProcess.endAll()
  rmSync(folder, { recursive: true, force: true })
})

/** One life of the process. Each but the last is killed at a place, at which passing of it, and goes on where the one before was. */
interface Life {
  readonly parallelism: number
  readonly kill?: { readonly at: FailpointName; readonly time: number }
}

const lives: readonly Life[] = [
  // Eight subtasks in each of two threads: their third checkpoint.
  { parallelism: 2, kill: { at: 'task.snapshot.async', time: 18 } },
  { parallelism: 3, kill: { at: 'sink.commit.middle', time: 1 } },
  { parallelism: 1, kill: { at: 'coordinator.swap.after', time: 2 } },
  { parallelism: 2 },
]

describe('a local job that connects and joins two streams', () => {
  it('is exact over kills and at another parallelism after some of them', async () => {
    const output = join(folder, 'out')
    const args = { output, perSplit, ratePerSecond: 200 }
    const jobFile = fileURLToPath(new URL('./jobs/two-streams-job.ts', import.meta.url))
    for (const { parallelism, kill } of lives) {
      if (kill === undefined) hurry(folder)
      const failpoints = kill === undefined ? '' : `${kill.at}:kill:${kill.time}`
      const process = new JobProcess({ jobFile, folder, name: 'two', args, parallelism, failpoints })
      const exit = await process.ended()
      const expected = kill === undefined ? { code: 0, signal: null } : { code: null, signal: 'SIGKILL' }
      expect({ kill, exit }, process.story()).toEqual({ kill, exit: expected })
    }
    const lines = linesOf<{ readonly text: string }>(join(output, 'lines')).map(({ text }) => text)
    expect(differenceOf(lines, expectedLines())).toEqual([])
  })
})

function differenceOf(got: readonly string[], want: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of want) counts.set(line, (counts.get(line) ?? 0) + 1)
  for (const line of got) counts.set(line, (counts.get(line) ?? 0) - 1)
  const wrong = [...counts].filter(([, count]) => count !== 0)
  return wrong.map(([line, count]) => `${count > 0 ? `${count} missing` : `${-count} too many`}: ${line}`).slice(0, 10)
}

function expectedLines(): string[] {
  const all: Numbered[] = []
  for (let split = 0; split < splits; split++) for (let n = 0; n < perSplit; n++) all.push({ split, n })
  const keys = [...new Set([...all.map(leftKey), ...all.map(rightKey)])]
  const lines: string[] = []
  for (const key of keys) {
    const lefts = all.filter((record) => leftKey(record) === key)
    const rights = all.filter((record) => rightKey(record) === key)
    lines.push(`counts ${key}: ${lefts.length} ${rights.length}`)
    lines.push(`rules ${key}: ${rulesCount} ${(rulesCount * (rulesCount - 1)) / 2}`)
    for (const left of lefts) {
      for (const right of rights) {
        if (Math.abs(left.n - right.n) * stepMs <= nearMs)
          lines.push(`near ${key}: ${numberOf(left)} ${numberOf(right)}`)
        if (Math.floor((left.n * stepMs) / windowMs) === Math.floor((right.n * stepMs) / windowMs))
          lines.push(`joined ${key}: ${numberOf(left)} ${numberOf(right)}`)
      }
    }
  }
  return lines
}
