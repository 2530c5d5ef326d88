import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { incarnation, jobId, slotId } from '../../base/ids.ts'
import { parseFailpoints } from '../failpoint-plan.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import { THREAD_END_MS_MAX } from '../../control/contract.ts'
import { ThreadSlots } from './thread-slots.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

it('a thread in a call that nothing interrupts ends the process within its deadline, and the command says why', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-thread-'))
  folders.push(folder)
  const jobFile = join(folder, 'job.ts')
  const begun = join(folder, 'begun')
  // Until the mark is gone: long enough for the test, and not a moment longer. The shell makes it: the thread is in that call then.
  const wait = `: > ${begun}; while [ -e ${begun} ]; do sleep 0.05; done`
  await writeFile(
    jobFile,
    `import { execFileSync } from 'node:child_process'
execFileSync('sh', ['-c', '${wait}'])
`,
  )
  const environment = manualEnvironment()
  const said: string[] = []
  let kills = 0
  const slots = new ThreadSlots({
    setup: {
      job: jobId('blocked-1'),
      jobFile,
      jobName: 'blocked',
      args: undefined,
      parallelism: 1,
      parallelismDefault: 1,
      maxParallelism: undefined,
      settings: {},
      storeFolder: folder,
      savepointsFolder: undefined,
      slotCount: 1,
      failpoints: parseFailpoints(''),
    },
    environment,
    log: (level, message) => said.push(`${level}: ${message}`),
    kill: () => void kills++,
  })
  const slot = slotId('0#1.1')
  slots.start(slot, { incarnation: incarnation(1), parallelism: undefined })
  const exited = new Promise((resolve) => slots.workers.get(slot)!.once('exit', resolve))
  while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 20))
  const ended = slots.terminate(slot).then(
    () => 'ended',
    (error: Error) => error.message,
  )
  await environment.clock.advanceSettled(THREAD_END_MS_MAX - 1)
  expect(kills).toBe(0)
  await environment.clock.advanceSettled(1)
  expect(await ended).toMatch(/^MR-L04 .*Slot 0#1\.1 was asked to end 30 s ago\. .*the same command goes on/)
  expect(said).toEqual([`error: ${await ended}`])
  expect(kills).toBe(1)
  await rm(begun)
  await exited
  await slots.close()
})
