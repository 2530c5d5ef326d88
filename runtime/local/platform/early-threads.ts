// Threads for slots, started by a command before it has loaded the runtime itself: they load it at the same time as the main thread, on
// other processors, where they would otherwise begin only once the job is known. What is not needed ends with the command or becomes
// a spare thread.

import { SlotThread } from './slot-thread.ts'
import { sparesMax } from './spare-threads.ts'

/** Of a job that says nothing: its own config may still say something else. */
const parallelismUsual = 2

/**
 * A guess at how many slots the command will need, from its words as they are: 0 for a command that runs no job. No more than the
 * processors, which the threads would only share, nor than are kept as spares. What is wrong with the words is found where they are read.
 */
export function earlyThreadCount(words: readonly string[], processors: number): number {
  if (words[0] !== 'run' || words.includes('--help') || words.includes('-h')) return 0
  const at = words.findIndex((word) => word.startsWith('--parallelism'))
  const given = Number(words[at]?.split('=')[1] ?? words[at + 1])
  const parallelism = at >= 0 && Number.isInteger(given) && given > 0 ? given : parallelismUsual
  return Math.min(parallelism, processors, sparesMax)
}

/** They wait, and keep no process from its end. */
export function startEarlyThreads(words: readonly string[], processors: number): SlotThread[] {
  return Array.from({ length: earlyThreadCount(words, processors) }, () => new SlotThread())
}
