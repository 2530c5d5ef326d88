// What is still held, not what has yet to be collected.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of this process's array buffers that something refers to; collects the garbage first. */
export function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  // What the first has found is freed by a thread beside it, which the second waits for.
  collect()
  return process.memoryUsage().arrayBuffers
}
