// Loads a job file. It may lie anywhere and import millrace, its connectors and zod without a node_modules beside it: those names
// mean the runtime's own, so that job and runtime share one copy of each.

import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { jobOf } from '../job/define-job.ts'
import type { Job } from '../job/define-job.ts'
import { localError } from './errors.ts'
import { placeOf } from './load-place.ts'
import type { Place } from './load-place.ts'
import { leadsTo } from './platform/real-path.ts'

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
    const why = cause instanceof Error ? cause.message : String(cause)
    throw localError('MR-L01', `${placed(path, placeOf(cause))}: ${why}.`, cause)
  }
  return jobOf(module, path)
}

/** A file that it imports is named behind it. */
function placed(path: string, place: Place | undefined): string {
  if (place === undefined) return path
  return leadsTo(path, place.path) ? `${path}:${place.at}` : `${path}: ${place.path}:${place.at}`
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
