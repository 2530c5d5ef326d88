// What a planned failpoint does to its own process, from whichever of its threads passes the place.

import { writeSync } from 'node:fs'
import type { FailpointActions } from '../failpoint-plan.ts'

const standardError = 2
/** The signal may be given to another thread first; this one stops well within that time. */
const stopDelayMs = 200

export const ownProcess: FailpointActions = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  hold: (name) => {
    // At once, also from a slot thread, whose own streams need a turn of the main thread.
    writeSync(standardError, `held at ${name}\n`)
    process.kill(process.pid, 'SIGSTOP')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stopDelayMs)
  },
}
