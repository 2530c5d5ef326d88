// The flights job killed at each moment of a checkpoint and a commit.

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inFolder } from '../support/command.ts'
import { expectExactOutput, fewFlights, finished, flights, killed, useFlights } from '../support/flights.ts'

useFlights()

describe('the flights job', () => {
  const moments = [
    'task.process:kill:1',
    'task.snapshot.sync:kill:2',
    'task.snapshot.async:kill:3',
    'sink.preCommit.after:kill:2',
    'coordinator.manifest.before:kill:2',
    'coordinator.swap.before:kill:2',
    'coordinator.swap.after:kill:2',
    'sink.commit.middle:kill:1',
    'coordinator.confirm.before:kill:2',
    'task.finish:kill:1',
  ]
  it.each(moments)(
    'gives the same when the process is killed at %s and the same command is given again',
    async (failpoints) => {
      await inFolder(async (folder) => {
        expect(await flights(fewFlights(), { folder, failpoints })).toMatchObject(killed)
        expect(await flights(fewFlights(), { folder })).toMatchObject(finished)
        await expectExactOutput(join(folder, 'out/flights'), fewFlights())
      })
    },
  )
})
