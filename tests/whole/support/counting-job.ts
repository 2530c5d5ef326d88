// A job that writes the numbers from 0 into files, exactly once each: what is lost or doubled shows at once.

import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Numbers, at a rate, into files; lies where there is no node_modules. */
export const countingJob = `
import { defineJob, z } from 'millrace'
import { dataGenerator, jsonLineFileSink } from 'millrace/connectors'

const schema = z.object({ n: z.int() })
const args = z.object({ count: z.int(), ratePerSecond: z.number().optional(), label: z.string().default('none') })

export default defineJob({ args, summary: ({ job, args }) => job + ' counted to ' + args.count + ', ' + args.label }, (env, { count, ratePerSecond }) => {
  env.config.checkpointIntervalMs = 200
  env
    .source(dataGenerator({ create: (n) => ({ n }), schema, count, ratePerSecond }), { uid: 'numbers' })
    .sinkTo(jsonLineFileSink({ folder: 'out/' + env.job }))
    .uid('files')
})
`

/** Those that are committed, in their order. */
export async function numbersIn(folder: string): Promise<number[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith('part-'))
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return texts
    .flatMap((text) => text.trimEnd().split('\n'))
    .map((line) => (JSON.parse(line) as { n: number }).n)
    .toSorted((left, right) => left - right)
}

export const numbersBelow = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** Some checkpoint has completed and was committed. */
export const hasCommitted = (folder: string) => async (): Promise<boolean> => {
  const names = await readdir(folder).catch(() => [])
  return names.some((name) => name.startsWith('part-'))
}
