// Every flow by its name.

import type { FlowName } from '../job/shape.ts'
import type { Flow } from './flow.ts'
import { asynchronous, connected, counter, pipes, timeToLive } from './counters.ts'
import { countWindows, processingWindows, sessions } from './other-windows.ts'
import { eventTimers, processingTimers } from './timers.ts'
import { broadcast, coGroups, intervalJoin, windowJoin } from './two-streams.ts'
import { idleWindows, windows } from './windows.ts'

export const flows: Readonly<Record<FlowName, Flow>> = {
  counter,
  regions: counter,
  windows,
  'idle windows': idleWindows,
  'event timers': eventTimers,
  'processing timers': processingTimers,
  connected,
  'time to live': timeToLive,
  asynchronous,
  sessions,
  'processing windows': processingWindows,
  'count windows': countWindows,
  broadcast,
  coGroups,
  'window join': windowJoin,
  'interval join': intervalJoin,
  pipes,
}
