// How long the event loop of a slot's thread is held up, collection of garbage included.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Board } from './board.ts'

/** The loop is asked for so often; what is reported is longer than the stall by up to this. */
const resolutionMs = 1
const publishMs = 20

/** Publishes p99 and longest delay since the driver last raised the board's `watch`. */
export function watchLoop(board: Board, subtask: number): void {
  const { numbers } = board
  const p99 = Board.lane('stallP99Ms', subtask)
  const longest = Board.lane('stallMaxMs', subtask)
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  const turns = watchTurns()
  let watch = board.get('watch')
  setInterval(() => {
    if (board.get('watch') !== watch) {
      watch = board.get('watch')
      delays.reset()
      turns.longestMs = 0
      numbers[p99] = 0
      numbers[longest] = 0
      return
    }
    numbers[p99] = delays.percentile(99) / 1e6
    numbers[longest] = delays.max / 1e6
    numbers[Board.lane('turnCpuMaxMs', subtask)] = turns.longestMs
  }, publishMs).unref()
}

/** Processor time of the thread from one turn of its timers to the next: what is left of a stall when the machine has other work. */
function watchTurns(): { longestMs: number } {
  const turns = { longestMs: 0 }
  let before = process.threadCpuUsage()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    turns.longestMs = Math.max(turns.longestMs, (user + system) / 1000)
  }, resolutionMs).unref()
  return turns
}
