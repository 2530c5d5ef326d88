// Calls that are held open on request, so that a test can kill somebody while he waits for the ledger.

export const heldCalls = ['append', 'preCommit', 'commit', 'abort', 'plain'] as const
export type HeldCall = (typeof heldCalls)[number]

export interface Hold {
  readonly what: HeldCall
  /** Part of the transaction's (or the writer's) name; default: any. */
  readonly match?: string
  /** before: nothing has happened yet. after: it has, and only the answer is missing. Default before. */
  readonly where?: 'before' | 'after'
  /** Default: of any book. */
  readonly book?: string
}

export interface HeldReport {
  readonly what: HeldCall
  readonly book: string
  /** Of the transaction or writer. */
  readonly name: string
  readonly where: 'before' | 'after'
  readonly sinceMs: number
}

interface Waiting extends HeldReport {
  readonly go: (how: 'released' | 'gone') => void
}

export class Holds {
  #holds: Hold[] = []
  readonly #waiting = new Set<Waiting>()

  hold(hold: Hold): void {
    this.#holds.push(hold)
  }

  /** Lets go what waits, and holds nothing more. Returns how many waited. */
  release(): number {
    this.#holds = []
    const waiting = [...this.#waiting]
    for (const { go } of waiting) go('released')
    return waiting.length
  }

  get held(): readonly HeldReport[] {
    return [...this.#waiting].map(({ what, book, name, where, sinceMs }) => ({ what, book, name, where, sinceMs }))
  }

  /** gone: the caller has given up or died meanwhile; what has not happened by then must not happen any more. */
  async pass(call: Omit<HeldReport, 'sinceMs'>, nowMs: number, gone: AbortSignal): Promise<'go on' | 'gone'> {
    if (gone.aborted) return 'gone'
    if (!this.#holds.some((hold) => isHeld(hold, call))) return 'go on'
    const how = await new Promise<'released' | 'gone'>((resolve) => {
      const waiting: Waiting = { ...call, sinceMs: nowMs, go: settle }
      function onGone(): void {
        settle('gone')
      }
      const waits = this.#waiting
      function settle(how: 'released' | 'gone'): void {
        waits.delete(waiting)
        gone.removeEventListener('abort', onGone)
        resolve(how)
      }
      waits.add(waiting)
      gone.addEventListener('abort', onGone)
    })
    return how === 'gone' ? 'gone' : 'go on'
  }
}

function isHeld({ what, match = '', where = 'before', book }: Hold, call: Omit<HeldReport, 'sinceMs'>): boolean {
  return (
    what === call.what &&
    where === call.where &&
    call.name.includes(match) &&
    (book === undefined || book === call.book)
  )
}
