// The workers of one start of a job, and the supervisor that starts the dead again, as a StatefulSet does.

import type { Machine, SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { startWorker } from './workers.ts'
import type { SimWorker, SimWorkerOptions } from './workers.ts'
import type { WorkerEnd } from '../../distributed/worker-shell.ts'

export interface WorkerPoolOptions extends Pick<
  SimWorkerOptions,
  'job' | 'network' | 'connections' | 'run' | 'onSlot' | 'fail'
> {
  readonly world: World
  readonly random: SeededRandom
  /** Of the job at its largest. */
  readonly slotsNeeded: number
  readonly machineOf: (worker: string) => Machine
  /** A new worker's process. */
  readonly onWorker: (process: SimProcess) => void
}

/** A worker that died is there again after about so long, virtual ms; some pods take far longer. */
const restartMsMean = 300
const lateRestartMsMax = 15_000

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #processes = new Map<SimProcess, SimWorker>()
  #closed = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    const { random, slotsNeeded } = options
    const count = Math.min(slotsNeeded, random.pick([1, 2, 2, 3, 4]))
    // As many slots as are needed, or so many that the job has room without some of its workers.
    const spare = random.pick([0, 0, 1, slotsNeeded, slotsNeeded])
    let left = slotsNeeded + spare
    for (let index = 0; index < count; index++) {
      const slots = Math.ceil(left / (count - index))
      left -= slots
      this.#start(`w-${index}`, slots)
    }
  }

  /** Nobody is started again. */
  close(): void {
    this.#closed = true
  }

  leave(process: SimProcess): void {
    const worker = this.#processes.get(process)
    if (worker !== undefined)
      this.#options.world.after(0, 'a worker is to leave', () => worker.leave(), { owner: process })
  }

  /** Their pods are deleted. */
  kill(reason: string): void {
    this.close()
    for (const process of this.#processes.keys()) process.kill(reason)
  }

  #start(name: string, slots: number): void {
    const { world, random, machineOf, onWorker, fail } = this.#options
    const process = machineOf(name).spawn(`worker ${name}`)
    onWorker(process)
    process.onExit(undefined, () => {
      this.#processes.delete(process)
      if (this.#closed) return
      const inMs = random.chance(0.1) ? random.between(0, lateRestartMsMax) : random.exponential(restartMsMean)
      world.after(inMs, `supervisor of ${name}`, () => !this.#closed && this.#start(name, slots))
    })
    const onEnded = ({ reason, error, final }: WorkerEnd): void => {
      if (final) fail(`worker ${name} gives up: ${error?.message ?? reason}`)
      process.kill(`it ends: ${reason}`)
    }
    this.#processes.set(process, startWorker({ ...this.#options, name, process, slots, onEnded }))
  }
}
