// Writes tests/golden/v2: `node tests/golden/make-v2.ts`, by hand, once, as make.ts wrote v1; `node tests/golden/make-v2.ts FOLDER` writes what
// today's code would into another folder, to compare. What lies in v2 later versions must read for ever: it is never written again. A state
// or an operator that it does not hold goes into a folder of the next number.

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { joinPath } from '../../runtime/storage/paths.ts'
import { putInto } from './v2-files.ts'
import { uninterrupted, writtenByToday } from './v2-writing.ts'

const folder = process.argv[2] ?? fileURLToPath(new URL('v2', import.meta.url))
if (existsSync(folder)) {
  console.error(
    `${folder} is there, and a golden folder is never written again. A new version gets a folder of its own.`,
  )
  process.exit(1)
}
const { head, objects, out } = await writtenByToday()
const results = `${(await uninterrupted()).join('\n')}\n`
const files = new NodeFiles()
await files.makeDirectory(folder)
await putInto(files, joinPath(folder, 'objects'), objects)
await putInto(files, joinPath(folder, 'output'), out)
await files.writeNew(joinPath(folder, 'HEAD'), head)
await files.writeNew(joinPath(folder, 'results.txt'), new TextEncoder().encode(results))
