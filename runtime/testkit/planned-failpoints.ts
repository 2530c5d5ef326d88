// Failpoints that a test armed: the process that passes one fails or dies there, once.

import type { FailpointName } from '../base/failpoints.ts'
import { ProcessDeath } from './test-process.ts'
import type { TestProcess } from './test-process.ts'

/** Thrown by a failpoint that was armed to fail. */
export class PlannedFailure extends Error {
  override readonly name = 'PlannedFailure'
}

export interface ArmedFailpoint {
  /** Whether it was passed, and did what it was armed for. A test that never looks may pass for want of a fault. */
  readonly happened: boolean
}

interface Armed {
  readonly name: FailpointName
  readonly act: 'fail' | 'kill'
  /** Passages that are let by. */
  left: number
  happened: boolean
}

export class PlannedFailpoints {
  readonly #armed = new Set<Armed>()

  /** `skip`: passages, of any process, that it lets by first. */
  arm(name: FailpointName, { act, skip }: { readonly act: Armed['act']; readonly skip: number }): ArmedFailpoint {
    const armed = { name, act, left: skip, happened: false }
    this.#armed.add(armed)
    return armed
  }

  hit(name: FailpointName, process: TestProcess): void {
    for (const armed of this.#armed) {
      if (armed.name !== name || armed.left-- > 0) continue
      this.#armed.delete(armed)
      armed.happened = true
      if (armed.act === 'fail') throw new PlannedFailure(`planned at ${name}`)
      process.kill(`killed at ${name}`)
      throw new ProcessDeath(`${process.name} was killed at ${name}`)
    }
  }
}
