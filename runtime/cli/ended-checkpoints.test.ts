import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkpointId, jobId, requestId } from '../base/ids.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import type { Remembered } from '../rest/job-history.ts'
import type { CheckpointResource, CheckpointsResource } from '../rest/resources.ts'
import { checkpointRef, savepointRef } from '../rest/test-job.ts'
import { cancel, fail, stop } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { localStoreFolder } from '../storage/paths.ts'
import { showCheckpoints } from './checkpoints-command.ts'
import { parseCommandLine } from './command-line.ts'
import type { ControlEdge } from './named-job.ts'
import { Terminal } from './terminal.ts'
import { endedJob, fillStores } from './test-ended-job.ts'
import type { EndedJob } from './test-ended-job.ts'

const environment = realEnvironment({ log: () => undefined })
let folder = ''
let printed = ''
let edge: ControlEdge

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-ended-'))
  printed = ''
  const output = { write: (text: string) => (printed += text) }
  edge = { terminal: new Terminal({ output, errors: output }), folder, debug: false }
  await writeFile(join(folder, 'owner'), 'the-token-of-the-owner\n')
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** What is printed, or the message of what is thrown. */
async function checkpoints(...words: readonly string[]): Promise<string> {
  const command = parseCommandLine(['checkpoints', ...words])
  if (command.kind !== 'checkpoints') throw new Error(command.kind)
  printed = ''
  try {
    await showCheckpoints(command, edge)
  } catch (error) {
    return (error as Error).message
  }
  return printed
}

/** Below `.millrace` in `folder`; resolves to the words that name it. */
async function localJob(folderOfJobs: string, job: EndedJob): Promise<readonly string[]> {
  const storeFolder = join(folderOfJobs, localStoreFolder(jobId('orders')))
  await fillStores(attachLocalStores({ files: new NodeFiles(), folder: storeFolder, environment }), job)
  return ['orders']
}

const subtask = {
  vertex: 'orders',
  subtask: 0,
  finished: false,
  bytes: 20,
  syncMs: 3,
  asyncMs: 4,
  alignmentMs: 0,
  startDelayMs: 1,
}
const remembered: Remembered = {
  completed: [
    { manifest: checkpointRef(2), durationMs: 30, subtasks: [subtask] },
    { manifest: checkpointRef(4), durationMs: 40, subtasks: [subtask] },
  ],
  failed: [{ id: checkpointId(3), atMs: 0, reason: 'declined', detail: 'sums/0: no' }],
  exceptions: [],
  restarts: [],
}
const retaining = (head: Head): Head => ({ ...head, retained: [checkpointRef(4)] })
const stopped = (head: Head): Head =>
  stop(retaining(head), { request: requestId('r'), manifest: savepointRef(5), commitsPending: false })

describe.each([
  ['named by its process config', endedJob],
  ['of this machine', localJob],
] as const)('the checkpoints of a job that has ended, %s', (_, ended) => {
  it('are those that HEAD retains, and the last ones of the stored history', async () => {
    const words = await ended(folder, { change: stopped, remembered })
    const text = await checkpoints(...words)
    expect(text).toMatch(
      /^orders was stopped with \/\S+savepoint-5 \(start 1\)\.\nRetained:\n {2}\/\S+chk-4 .*\n\nid +kind .*\n +2 +checkpoint .*\n +4 +checkpoint .* 40 ms .*\n3 failed at .* \(declined\): sums\/0: no\n$/,
    )
    const shown = JSON.parse(await checkpoints('--json', ...words)) as CheckpointsResource
    expect(shown).toMatchObject({ counters: null, intervalMs: null, pending: null, retained: [{ id: 4 }] })
    expect(shown.completed.map(({ id, subtasks }) => [id, subtasks])).toEqual([
      [2, [subtask]],
      [4, [subtask]],
    ])
    expect(shown.failed).toEqual(remembered.failed)
  })

  it('are shown one by one with what each subtask took, as far as that is stored', async () => {
    const words = await ended(folder, { change: stopped, remembered })
    const one = async (id: number) => checkpoints('--id', String(id), ...words)
    expect(await one(4)).toMatch(
      /^checkpoint 4 completed at .* in 40 ms, 100 bytes, retained\n\/\S+chk-4\n\nsubtask .*\norders\/0 +1 ms +0 ms +3 ms +4 ms +20/,
    )
    // Not retained any more.
    expect(await one(2)).toMatch(/^checkpoint 2 completed at .* in 30 ms, 100 bytes\n/)
    expect(await one(3)).toMatch(/^3 failed at .* \(declined\): sums\/0: no\n$/)
    // Of HEAD's end, and no history has it.
    expect(await one(5)).toMatch(
      /^savepoint 5 completed at .*, 100 bytes\n\/\S+savepoint-5\nWhat each subtask took is not remembered\.\n$/,
    )
    expect(JSON.parse(await checkpoints('--json', '--id', '4', ...words)) as CheckpointResource).toMatchObject({
      state: 'completed',
      retained: true,
      subtasks: [subtask],
    })
    expect(await one(1)).toMatch(/^MR-L33 .*Checkpoint 1 of orders: HEAD does not name it, .* last 20 /)
  })

  it('are those of HEAD alone where no history was stored, which is said', async () => {
    const words = await ended(folder, { change: (head) => fail(retaining(head), 'it was given up') })
    expect(await checkpoints(...words)).toMatch(
      /^orders has failed: it was given up \(start 1\)\.\nNo history of it is stored: .*\nRetained:\n {2}\/\S+chk-4 /,
    )
    expect(await checkpoints('--id', '4', ...words)).toMatch(/^checkpoint 4 completed .*, retained\n.*\nWhat each/)
    expect(await checkpoints('--id', '3', ...words)).toMatch(/^MR-L33 .*HEAD does not name it\. No history of it is/)
  })

  it('are none that could be taken', async () => {
    const words = await ended(folder, { change: (head) => cancel(head, { deleted: false }) })
    expect(await checkpoints('--trigger', ...words)).toMatch(/^MR-L3\d .*/)
    expect(await checkpoints(...words)).toMatch(/^orders was cancelled \(start 1\)\.\n.*\norders retains no checkpoint/)
  })
})

it('a job of this machine whose process is gone is interrupted, and its checkpoints are told so too', async () => {
  const words = await localJob(folder, { change: retaining, remembered })
  expect(await checkpoints(...words)).toMatch(
    /^orders is interrupted: its run command goes on with it \(start 1\)\.\nRet/,
  )
})
