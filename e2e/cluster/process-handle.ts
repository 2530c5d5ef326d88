// A process that outlives the one that started it, named so that no other can be mistaken for it: by id and time of start.

import { readFileSync } from 'node:fs'

export interface ProcessHandle {
  readonly pid: number
  /** Clock ticks since the machine's start (proc(5), field 22 of stat). */
  readonly startTicks: string
}

/** Undefined when there is no such process. */
export function handleOf(pid: number): ProcessHandle | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie runs no more; only its parent has not asked yet.
    return fields[0] === 'Z' ? undefined : { pid, startTicks: fields[19]! }
  } catch {
    return undefined
  }
}

export const isAlive = (handle: ProcessHandle): boolean => handleOf(handle.pid)?.startTicks === handle.startTicks

const goneDeadlineMs = 20_000

/** kill -9 of this process and no other; resolves once it is gone. */
export async function killProcess(handle: ProcessHandle): Promise<void> {
  const untilMs = performance.now() + goneDeadlineMs
  while (isAlive(handle)) {
    if (performance.now() > untilMs) throw new Error(`process ${handle.pid} does not end after kill -9`)
    try {
      process.kill(handle.pid, 'SIGKILL')
    } catch (error) {
      // It went meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
