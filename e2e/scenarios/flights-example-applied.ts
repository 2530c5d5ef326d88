import { readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'
import { selectorText } from '../../operator/resources/labels.ts'
import { millraceImage } from '../cluster/image.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { JobObject } from './support/job.ts'
import { found } from './support/wait.ts'
import { inWorld } from './support/world.ts'

const manifest = new URL('../../examples/flights/kubernetes.yaml', import.meta.url)

/** What the input holds, by its own count and by DuckDB's (tests/whole/flights.test.ts). */
const expected = { airportHours: 424_259, departures: 3_000_000, worstRoutes: 1_810, twice: 0 }

/** Run beside the results, in the coordinator that stays: committed files only. */
const counting = `
const { readFileSync, readdirSync } = require('node:fs')
const [job] = process.argv.slice(1)
const linesOf = (folder) => readdirSync(folder).filter((name) => name.startsWith('part-'))
  .map((name) => readFileSync(folder + '/' + name, 'utf8').trimEnd().split('\\n'))
const hours = linesOf('/results/' + job + '/airport-hours').flat().map((line) => JSON.parse(line))
const routes = linesOf('/results/' + job + '/worst-routes').flatMap((lines) => lines.slice(1))
const keys = [...hours.map(({ airport, hour }) => airport + ' ' + hour), ...routes.map((line) => line.split(',', 2).join())]
console.log(JSON.stringify({
  airportHours: hours.length,
  departures: hours.reduce((total, { departures }) => total + departures, 0),
  worstRoutes: routes.length,
  twice: keys.length - new Set(keys).size,
}))
`

/** As examples/flights/kubernetes.yaml says in its head: an image with code and data, the manifest applied as it is, results on a volume. */
export const scenario: Scenario = {
  name: 'flights example applied',
  core: false,
  usualMs: 300_000,
  run: async (cluster, context) => {
    const text = await readFile(manifest, 'utf8')
    const image = (parseAllDocuments(text)[0]!.toJS() as { spec: { program: { image: string } } }).spec.program.image
    await cluster.loadImage(await millraceImage({ names: [`docker.io/${image}`], examples: true }))
    await inWorld(cluster, context, 'flights', async ({ namespace }) => {
      const at = ['--namespace', namespace]
      await cluster.apply(text, { namespace })
      const job = await found(
        'the flights job to finish',
        async () => {
          const object = await cluster.get<JobObject>([...at, 'get', 'streamjob', 'flights'])
          return object.status?.ended === undefined ? undefined : object
        },
        420_000,
      )
      if (job.status?.phase !== 'FINISHED') throw new Error(`it is ${job.status?.phase}: ${job.status?.failure}`)
      context.say('finished')
      const { uid } = job.metadata
      const selector = selectorText({ namespace, name: 'flights', uid }, 'coordinator')
      const { stdout: pod } = await cluster.kubectl([...at, 'get', 'pods', '--selector', selector, '-o', 'name'])
      const { stdout } = await cluster.kubectl([...at, 'exec', pod.trim(), '--', 'node', '-e', counting, uid])
      const seen = JSON.parse(stdout) as typeof expected
      for (const [name, count] of Object.entries(expected))
        if (seen[name as keyof typeof expected] !== count) throw new Error(`${name} is not ${count}: ${stdout}`)
      context.say(`the results are there: ${stdout.trim()}`)
      await cluster.kubectl([...at, 'delete', 'streamjob', 'flights', '--timeout=60s'])
    })
  },
}
