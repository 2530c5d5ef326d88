// Ctrl-C at a real command, and once more after it was heard: each does what docs/operating.md says, and neither loses anything.

import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { hasCommitted, numbersBelow, numbersIn } from './support/counting-job.ts'

const count = 20_000
/** The command takes signals that are closer together for one. */
const apartMs = 600
const words = ['run', 'held.ts', '--arg', `count=${count}`]

/** Its sink finishes no barrier while there is a file `barrier`. */
const heldJob = `
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { defineJob, z } from 'millrace'
import { dataGenerator, jsonLineFileSink } from 'millrace/connectors'

const schema = z.object({ n: z.int() })
const args = z.object({ count: z.int(), ratePerSecond: z.number().optional() })

function held(sink) {
  return {
    ...sink,
    createWriter(context) {
      const writer = sink.createWriter(context)
      return {
        open: () => writer.open(),
        write: (value, timestamp) => writer.write(value, timestamp),
        async prepareCommit(checkpoint, endOfInput) {
          const prepared = await writer.prepareCommit(checkpoint, endOfInput)
          while (existsSync('barrier')) await setTimeout(10)
          return prepared
        },
        close: () => writer.close(),
      }
    },
  }
}

export default defineJob({ args }, (env, { count, ratePerSecond }) => {
  env.config.checkpointIntervalMs = 100
  env
    .source(dataGenerator({ create: (n) => ({ n }), schema, count, ratePerSecond }), { uid: 'numbers' })
    .sinkTo(held(jsonLineFileSink({ folder: 'out' })))
    .uid('files')
})
`

describe('a second Ctrl-C', () => {
  it('does not wait for the savepoint of the first: the job is suspended, and its command goes on exactly', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'held.ts'), heldJob)
      const run = new RunningCommand([...words, '--arg', 'ratePerSecond=1000'], { folder })
      await run.until(hasCommitted(join(folder, 'out')))
      await writeFile(join(folder, 'barrier'), '')
      run.kill('SIGINT')
      const first =
        /^Stopping held with a savepoint\. Once more suspends it at its last checkpoint; a third time leaves at once\.$/m
      await run.until(() => first.test(run.stderr))
      await sleep(apartMs)
      expect(run.stderr).not.toMatch(/stopped|Suspending/)

      run.kill('SIGINT')
      const { exitCode, stderr } = await run.ended
      expect(exitCode, stderr).toBe(0)
      expect(stderr).toMatch(/^Suspending held\. Once more leaves at once, which loses nothing either\.$/m)
      expect(stderr).toMatch(/^held is suspended\. The same command goes on with it\.$/m)
      expect(stderr).not.toMatch(/stopped with savepoint/)

      await rm(join(folder, 'barrier'))
      const last = await runCommand(words, { folder })
      expect(last, last.stderr).toMatchObject({ exitCode: 0 })
      expect(last.stderr).toMatch(/checkpoint \d+/)
      expect(await numbersIn(join(folder, 'out'))).toEqual(numbersBelow(count))
    })
  })
})
