// A call into the outside world that may never answer.

import type { Clock, Timer } from './environment.ts'

/** Settles as `call` does, or rejects with `late()` after `deadlineMs`. What the call answers later is nobody's. */
export async function within<T>(clock: Clock, deadlineMs: number, call: Promise<T>, late: () => Error): Promise<T> {
  let timer: Timer | undefined
  const over = new Promise<never>((_resolve, reject) => {
    timer = clock.timer(deadlineMs, () => reject(late()))
  })
  try {
    return await Promise.race([call, over])
  } finally {
    timer?.cancel()
  }
}
