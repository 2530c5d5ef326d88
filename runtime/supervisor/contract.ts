// What a coordinator or worker says to its supervisor: by its exit code, and while it runs.

export const processExitCodes = {
  /** It is needed no more. */
  done: 0,
  /** Another try may go better. */
  failed: 1,
  /** What it was given is wrong: another try would end in the same way. */
  badInput: 2,
  /** A coordinator was overtaken by another one of its own start: the next try waits (protocol rule 2). */
  fenced: 3,
} as const

/** A coordinator's word over the channel to its supervisor: it has raised the incarnation. */
export const ownsJob = 'owns the job'
