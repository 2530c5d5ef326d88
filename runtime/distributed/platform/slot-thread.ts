// One thread for a slot of a worker's process.

import type { MessagePort } from 'node:worker_threads'
import type { Incarnation } from '../../base/ids.ts'
import type { LogSink } from '../../local/platform/real-environment.ts'
import { RuntimeThread } from '../../local/platform/runtime-thread.ts'
import type { SlotSetup, ToThread } from './slot-setup.ts'

const entry = new URL(import.meta.url.endsWith('.ts') ? './slot-main.ts' : './slot-main.js', import.meta.url)

export class SlotThread extends RuntimeThread<ToThread> {
  /** What it died of, if it was an error. */
  error: string | undefined

  constructor(log: LogSink) {
    super(entry, log)
    this.worker.on('error', (error) => {
      this.error = String(error)
    })
  }

  /** Makes it the slot; the answer is the other end of its link's port. */
  become(setup: Omit<SlotSetup, 'type' | 'control'>): MessagePort {
    return this.connect((control) => ({ type: 'setup', ...setup, control }))
  }

  /** The other end of the new link's port. */
  attach(incarnation: Incarnation): MessagePort {
    return this.connect((control) => ({ type: 'attach', incarnation, control }))
  }

  detach(reason: string): void {
    this.say({ type: 'detach', reason })
  }
}
