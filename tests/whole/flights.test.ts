import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inFolder } from '../support/command.ts'
import { allFlights, expectExactOutput, fewFlights, finished, flights, killed, useFlights } from '../support/flights.ts'

useFlights()

describe('the flights job', () => {
  it('gives what DuckDB gives over all three million flights, also when it was killed in the middle', async () => {
    await inFolder(async (folder) => {
      expect(await flights(allFlights, { folder, failpoints: 'coordinator.swap.after:kill:4' })).toMatchObject(killed)
      const result = await flights(allFlights, { folder })
      expect(result).toMatchObject(finished)
      expect(result.stderr).toMatch(/Resuming flights from checkpoint \d+/)
      expect(result.stdout).toContain('424259 airport hours and 1810 daily worst routes')
      await expectExactOutput(join(folder, 'out/flights'), allFlights)
    })
  })

  it('gives the same when every second command is killed while it restores or commits', async () => {
    await inFolder(async (folder) => {
      const kills = [
        'coordinator.swap.after:kill:1',
        'task.restore:kill:3',
        'sink.commit.before:kill:1',
        'sink.commit.after:kill:2',
      ]
      for (const failpoints of kills) expect(await flights(fewFlights(), { folder, failpoints })).toMatchObject(killed)
      expect(await flights(fewFlights(), { folder })).toMatchObject(finished)
      await expectExactOutput(join(folder, 'out/flights'), fewFlights())
    })
  })
})
