// Waiting: for a call into the outside world that may never answer, and for a time.

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

/** Resolves after so long. */
export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.timer(ms, resolve))
}
