// The wait of a coordinator that was overtaken, and the end of it: it begins, or another one lives (rule 2).

import { pause } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import { RaiseAgain } from '../coordinator/raise-again.ts'
import type { RemoteSlots } from '../coordinator/remote-slots.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'

export interface AfterBackOffOptions {
  readonly keeper: Pick<HeadKeeper, 'read'>
  /** Workers are sent on, so that they find the other coordinator if there is one. */
  readonly slots: Pick<RemoteSlots, 'sendOn' | 'letIn'>
  readonly start: Start
  readonly backOffMs: number
  readonly environment: Pick<Environment, 'clock' | 'log'>
}

/** HEAD of the coordinator that lives; undefined: this one may begin, and lets workers in. Rejects when HEAD is not to be read by any further try. */
export async function afterBackOff(options: AfterBackOffOptions): Promise<Head | undefined> {
  const { keeper, slots, start, backOffMs, environment } = options
  const { clock, log } = environment
  const raising = new RaiseAgain({ start, backOffMs, nowMs: clock.nowMs() })
  slots.sendOn((instance) => raising.seeks(instance, clock.nowMs()))
  log('warn', 'another coordinator has taken the job over: it is watched whether that one lives', { backOffMs })
  for (;;) {
    const waitMs = raising.wakeAtMs - clock.nowMs()
    if (waitMs > 0) await pause(clock, waitMs)
    let head: Head | undefined
    try {
      head = await keeper.read()
    } catch (error) {
      if (!(error instanceof MillraceError && error.retry)) throw error
      log('warn', 'HEAD cannot be read; trying again', { error: error.message })
      raising.missedHead(clock.nowMs())
      continue
    }
    const decision = raising.sawHead(head, clock.nowMs())
    switch (decision) {
      case 'wait':
        continue
      case 'overtaken':
        return head
      case 'begin':
        slots.letIn()
        return undefined
      default:
        decision satisfies never
    }
  }
}
