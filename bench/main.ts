// `npm run bench -- <name> [...]`: runs benchmarks one after another.

import { readdirSync } from 'node:fs'
import type { Bench } from './figure.ts'

const notBenches = new Set(['main.ts', 'figure.ts', 'bid.ts'])
const names = readdirSync(new URL('.', import.meta.url))
  .filter((file) => file.endsWith('.ts') && !notBenches.has(file))
  .map((file) => file.slice(0, -'.ts'.length))
  .toSorted()

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !names.includes(name))
if (wanted.length === 0 || unknown.length > 0) {
  for (const name of unknown) console.error(`There is no benchmark ${name}.`)
  console.error(`npm run bench -- <name> [...], with one of: ${names.join(', ')}`)
  process.exit(2)
}

for (const name of wanted) {
  const bench = (await import(`./${name}.ts`)) as Bench
  let figures = 0
  await bench.run((figure) => {
    figures++
    console.log(JSON.stringify(figure))
  })
  // A benchmark that measures nothing must not pass for one that ran.
  if (figures === 0) throw new Error(`${name} gave no figure`)
}
