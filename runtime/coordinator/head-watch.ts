// Looks at HEAD now and then, for a coordinator that has nothing to write into it: without checkpoints it would not learn that its start
// was closed (rule 5), or that another coordinator has the job (rule 2), and its tasks would run on beside those of the next start.

import type { Environment, Timer } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'

/** From the end of one look to the next: as long as a close or another coordinator may go unnoticed. One read of a small object. */
export const headLookMs = 10_000

export interface HeadWatchOptions {
  readonly keeper: Pick<HeadKeeper, 'look'>
  readonly environment: Pick<Environment, 'clock' | 'log'>
  readonly onOvertaken: (answer: Overtaken) => void
  readonly onBroken: (error: unknown) => void
}

export class HeadWatch {
  readonly #options: HeadWatchOptions
  #timer: Timer | undefined
  #closed = false

  constructor(options: HeadWatchOptions) {
    this.#options = options
  }

  /** Until it has told of something, or `close`. */
  start(): void {
    this.#timer = this.#options.environment.clock.timer(headLookMs, () => void this.#look())
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { keeper, environment, onOvertaken, onBroken } = this.#options
    try {
      const answer = await keeper.look()
      if (this.#closed) return
      if (answer !== undefined) return onOvertaken(answer)
    } catch (error) {
      if (this.#closed) return
      if (error instanceof InvariantError) return onBroken(error)
      // Unknown is not overtaken: whoever has to write HEAD decides whether the job can go on without it.
      environment.log('warn', 'HEAD could not be looked at; trying again', { error: String(error) })
    }
    this.start()
  }
}
