import { describe, expect, it } from 'vitest'
import { jobId, start } from '../base/ids.ts'
import { FIRST_LOOK_DEADLINE_MS } from '../storage/first-look.ts'
import { newJob } from '../storage/head.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { jobFolders } from './job-folders.ts'
import { headKeeperOf, storedJobs } from './local-jobs.ts'

/** Job `flights` has begun, and then a second one of that name. */
async function subject() {
  const environment = manualEnvironment()
  const files = new MemoryFiles()
  const world = { files, environment, folder: '/w' }
  for (const id of ['flights', 'flights.2']) {
    const keeper = await headKeeperOf({ id: jobId(id), storeFolder: `/w/.millrace/${id}` }, world)
    await keeper.begin(() => newJob({ job: jobId(id), start: start(1), parallelism: 1, maxParallelism: 8 }))
  }
  return world
}

const looks: readonly [string, (world: Awaited<ReturnType<typeof subject>>) => Promise<unknown>][] = [
  ['all jobs', storedJobs],
  ['the folders of one', (world) => jobFolders({ ...world, name: 'flights' })],
]

describe('looking below a working folder for', () => {
  it('all jobs finds those that have begun', async () => {
    expect((await storedJobs(await subject())).map(({ id }) => id)).toEqual(['flights', 'flights.2'])
  })

  it('the folders of one finds their numbers and HEADs', async () => {
    const folders = await jobFolders({ ...(await subject()), name: 'flights' })
    expect(folders.map(({ number, head }) => [number, head?.end.kind])).toEqual([
      [1, 'none'],
      [2, 'none'],
    ])
  })

  it.each(looks)('%s is given up where nothing answers', async (_, look) => {
    const world = await subject()
    world.files.exists = () => new Promise(() => {})
    const looking = expect(look(world)).rejects.toThrow(/^MR-S01 .*\/w/)
    await world.environment.clock.advanceSettled(FIRST_LOOK_DEADLINE_MS)
    await looking
  })
})
