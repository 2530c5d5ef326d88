// Signals to end that a command handles by itself, and how it leaves when it has nothing more to wait for.

/** npm passes a Ctrl-C on to a command that the terminal has told of it already: signals so close together are one. */
const sameSignalMs = 500

/** As shells count signals. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const
let lastSignalMs = -Infinity

/**
 * `handler`: false: it was asked to end in vain, or there is nothing to end in order; leave at once. So it is before a job runs, where its file
 * may never come to its end, and before there is a handler. Whatever happens, the store stays right.
 */
export function handleSignals(handler: () => boolean): void {
  for (const [signal, exitCode] of Object.entries(signals)) {
    process.on(signal, () => {
      if (performance.now() - lastSignalMs < sameSignalMs) return
      lastSignalMs = performance.now()
      if (handler()) return
      // Unhandled, the signal ends the process: an exit would first wait for a thread in a call that nothing interrupts.
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
      // Of the first process of a container the kernel keeps its own signals away.
      process.exit(exitCode)
    })
  }
}
