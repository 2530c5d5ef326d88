// A measurement in a process of its own: a request as its argument, a result as the last line of its output.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** `script` lies beside this file. */
export async function inChild<Result>(script: string, request: object, deadlineMs: number): Promise<Result> {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const { stdout, stderr } = await run(process.execPath, [path, JSON.stringify(request)], {
    timeout: deadlineMs,
  })
  if (stderr !== '') process.stderr.write(stderr)
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as Result
}

/** In the child. */
export function serveChild(measure: (request: never) => Promise<unknown>): void {
  measure(JSON.parse(process.argv[2]!) as never).then(
    (result) => {
      console.log(JSON.stringify(result))
      process.exit(0)
    },
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
}
