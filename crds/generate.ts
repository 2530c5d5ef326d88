// node crds/generate.ts: writes the definitions of the kinds into the chart.

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chartFiles } from './chart-files.ts'

for (const { path, text } of chartFiles()) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}
