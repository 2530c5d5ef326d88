// What the threads of a measured job and its driver tell each other: numbers in shared memory, as the peer's are in its one JVM.
// Each subtask writes lanes of its own, so no atomic operation is needed; a reader that is a moment behind does no harm.

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

const subtasksMax = 8
/** Between two lanes, so that no two threads write to one cache line. */
const laneNumbers = 16

const counters = [
  'source',
  'operator',
  'output',
  'checksum',
  'first',
  'stallP99Ms',
  'stallMaxMs',
  'turnCpuMaxMs',
] as const
type Counter = (typeof counters)[number]
const controls = ['limit', 'throw', 'threwAtMs', 'watch'] as const
type Control = (typeof controls)[number]

const environmentKey = 'millrace bench board'

export class Board {
  readonly numbers: Float64Array

  constructor(buffer: SharedArrayBuffer) {
    this.numbers = new Float64Array(buffer)
  }

  /** Where a subtask's counter lies in `numbers`. */
  static lane(counter: Counter, subtask: number): number {
    return (controls.length + counters.indexOf(counter) * subtasksMax + subtask) * laneNumbers
  }

  sum(counter: Counter): number {
    return this.values(counter).reduce((sum, value) => sum + value, 0)
  }

  values(counter: Counter): number[] {
    return Array.from({ length: subtasksMax }, (_, subtask) => this.numbers[Board.lane(counter, subtask)]!)
  }

  clear(counter: Counter): void {
    for (let subtask = 0; subtask < subtasksMax; subtask++) this.numbers[Board.lane(counter, subtask)] = 0
  }

  /** Where a control lies in `numbers`: what is asked with each record is not to be searched for by its name. */
  static control(control: Control): number {
    return controls.indexOf(control) * laneNumbers
  }

  get(control: Control): number {
    return this.numbers[Board.control(control)]!
  }

  set(control: Control, value: number): void {
    this.numbers[Board.control(control)] = value
  }
}

/** In the driver, before the job's threads start: they find it by `board()`. */
export function createBoard(): Board {
  const lanes = controls.length + counters.length * subtasksMax
  const buffer = new SharedArrayBuffer(lanes * laneNumbers * Float64Array.BYTES_PER_ELEMENT)
  setEnvironmentData(environmentKey, buffer)
  const created = new Board(buffer)
  created.set('limit', Number.POSITIVE_INFINITY)
  return created
}

/** The driver's board; in a job that runs without one (`millrace run`), one that nobody reads. */
export function board(): Board {
  const shared = getEnvironmentData(environmentKey)
  return shared instanceof SharedArrayBuffer ? new Board(shared) : createBoard()
}

/** One clock for all threads, ms. */
export function monotonicMs(): number {
  return performance.timeOrigin + performance.now()
}
