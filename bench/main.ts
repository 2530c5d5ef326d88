// `npm run bench -- <name> [...]`: runs benchmarks one after another.

import { readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Bench } from './figure.ts'
import type { MeasureOptions } from './measure/options.ts'

const notBenches = new Set(['main.ts', 'figure.ts', 'bid.ts'])
const names = readdirSync(new URL('.', import.meta.url))
  .filter((file) => file.endsWith('.ts') && !notBenches.has(file))
  .map((file) => file.slice(0, -'.ts'.length))
  .toSorted()

const usage = `npm run bench -- <name> [...], with one of: ${names.join(', ')}
throughput, snapshot and recovery take --warm-seconds, --measure-seconds, --only <part of a case>, --keys`

/** Ends with what is wrong, and how it is called. */
function refuse(...problems: readonly string[]): never {
  for (const text of [...problems, usage]) console.error(text)
  process.exit(2)
}

function words() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        'warm-seconds': { type: 'string', default: '8' },
        'measure-seconds': { type: 'string', default: '15' },
        only: { type: 'string', default: '' },
        keys: { type: 'string', default: '1000000' },
      },
    })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const { positionals: wanted, values } = words()
const unknown = wanted.filter((name) => !names.includes(name))
if (wanted.length === 0 || unknown.length > 0) refuse(...unknown.map((name) => `There is no benchmark ${name}.`))
for (const name of ['warm-seconds', 'measure-seconds', 'keys'] as const)
  if (!(Number(values[name]) > 0)) refuse(`--${name} takes a number above 0, not "${values[name]}".`)
const options: MeasureOptions = {
  warmSeconds: Number(values['warm-seconds']),
  measureSeconds: Number(values['measure-seconds']),
  only: values.only,
  keys: Number(values.keys),
  peers: process.env['MILLRACE_PEERS'],
}

for (const name of wanted) {
  const bench = (await import(`./${name}.ts`)) as Bench
  let figures = 0
  await bench.run((figure) => {
    figures++
    console.log(JSON.stringify(figure))
  }, options)
  // A benchmark that measures nothing must not pass for one that ran.
  if (figures === 0) throw new Error(`${name} gave no figure`)
}
