// Loads a job file. It may lie anywhere and import millrace, its connectors and zod without a node_modules beside it: those names
// mean the runtime's own, so that job and runtime share one copy of each.

import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { jobOf } from '../job/define-job.ts'
import type { Job } from '../job/define-job.ts'
import { localError } from './errors.ts'

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
const own = new Map([
  ['millrace', new URL(`../api${extension}`, import.meta.url).href],
  ['millrace/connectors', new URL(`../connectors/api${extension}`, import.meta.url).href],
  ['zod', import.meta.resolve('zod')],
])

let hooked = false

/** Throws MR-L01 when the file cannot be loaded, MR-J02 when it exports no job. */
export async function loadJob(path: string): Promise<Job> {
  hook()
  let module: unknown
  try {
    module = await import(pathToFileURL(path).href)
  } catch (cause) {
    throw localError('MR-L01', `${path}: ${cause instanceof Error ? cause.message : String(cause)}.`, cause)
  }
  return jobOf(module, path)
}

/** Once per thread: hooks stay for its life. */
function hook(): void {
  if (hooked) return
  hooked = true
  registerHooks({
    resolve: (specifier, context, next) => {
      const url = own.get(specifier)
      return url === undefined ? next(specifier, context) : { url, shortCircuit: true }
    },
  })
}
