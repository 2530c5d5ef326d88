// A simulated disk of one machine: late, full, failing, and honest about what was not synced when the power went.

import type { FileSystem } from '../storage/contract.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import type { FileFault, FileOperation } from '../storage/memory-files.ts'
import type { Machine, SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'
import { Weather } from './weather.ts'
import type { World } from './world.ts'

/** slow: latencies times the level. failing: the chance of EIO. full: the chance that a write meets ENOSPC. */
export type DiskTrouble = 'slow' | 'failing' | 'full'

const latencyMsMean = 0.2
/** A sync waits for the device. */
const syncMsMean = 3

const writes: ReadonlySet<FileOperation> = new Set([
  'makeDirectory',
  'writeNew',
  'append',
  'truncate',
  'link',
  'rename',
])

/** Disks are few and idle mostly: without it hardly any run met a slow one, and none a full one. */
export function foreseeTrouble({ weather, world }: SimDisk, random: SeededRandom): void {
  for (const [kind, level] of [
    ['slow', 50],
    ['full', 1],
  ] as const) {
    for (let times = random.below(4); times > 0; times--) {
      const fromMs = world.nowMs + random.exponential(2_000)
      weather.foresee(kind, level, { fromMs, untilMs: fromMs + random.between(200, 2_000) })
    }
  }
}

export class SimDisk {
  readonly world: World
  readonly weather: Weather<DiskTrouble>
  /** What is on the disk. Scenarios may look into it; processes get handles. */
  readonly files: MemoryFiles
  readonly #random: SeededRandom
  /** Rises with each power loss: what was under way then never lands. */
  #era = 0
  /** How the operation that lands now goes. */
  #fault: FileFault | undefined

  constructor(machine: Machine) {
    this.world = machine.world
    this.weather = new Weather(this.world, `disk of ${machine.name}`)
    this.#random = this.world.random.split(`disk ${machine.name}`)
    this.files = new MemoryFiles(() => this.#fault)
    machine.onCrash(() => {
      this.#era++
      this.files.crash(() => this.#random.next())
    })
  }

  /** The file system as one process of this machine has it: its calls are never answered once it is dead. */
  handle(process: SimProcess): FileSystem {
    const files = this.files
    const perform = <T>(operation: FileOperation, path: string, apply: () => Promise<T>): Promise<T> =>
      this.#perform(process, operation, path, apply)
    return {
      readFile: (path) => perform('readFile', path, () => files.readFile(path)),
      readRange: (path, offset, length) => perform('readRange', path, () => files.readRange(path, offset, length)),
      sizeOf: (path) => perform('sizeOf', path, () => files.sizeOf(path)),
      list: (path) => perform('list', path, () => files.list(path)),
      makeDirectory: (path) => perform('makeDirectory', path, () => files.makeDirectory(path)),
      writeNew: (path, bytes) => perform('writeNew', path, () => files.writeNew(path, bytes)),
      append: (path, bytes) => perform('append', path, () => files.append(path, bytes)),
      truncate: (path, length) => perform('truncate', path, () => files.truncate(path, length)),
      sync: (path) => perform('sync', path, () => files.sync(path)),
      link: (from, to) => perform('link', to, () => files.link(from, to)),
      rename: (from, to) => perform('rename', to, () => files.rename(from, to)),
      remove: (path) => perform('remove', path, () => files.remove(path)),
      exists: (path) => perform('exists', path, () => files.exists(path)),
    }
  }

  #perform<T>(process: SimProcess, operation: FileOperation, path: string, apply: () => Promise<T>): Promise<T> {
    const label = `${operation} ${path}`
    const completion = process.completion<T>(label)
    if (!process.alive) return completion.promise
    const era = this.#era
    const thereMs = process.wakesInMs + this.#latencyMs(operation)
    const backMs = this.#latencyMs('exists')
    const afterDeath = this.#random.pick(['nothing', 'torn', 'all'])
    const land = (): void => {
      if (era !== this.#era || (!process.alive && afterDeath === 'nothing')) return
      this.#fault = process.alive ? this.#drawFault(operation) : afterDeath === 'torn' ? torn : undefined
      const answer = apply()
      this.#fault = undefined
      answer.then(
        (value) => completion.settle(backMs, () => value),
        (error: unknown) =>
          completion.settle(backMs, () => {
            throw error
          }),
      )
    }
    this.world.after(thereMs, `${label} on disk`, land)
    return completion.promise
  }

  #drawFault(operation: FileOperation): FileFault | undefined {
    const effect = this.#random.pick(['none', 'half', 'done'] as const)
    if (writes.has(operation) && this.#strikes('full'))
      return { code: 'ENOSPC', effect: effect === 'done' ? 'half' : effect }
    return this.#strikes('failing') ? { code: 'EIO', effect } : undefined
  }

  #strikes(kind: 'failing' | 'full'): boolean {
    if (!this.#random.chance(this.weather.level(kind))) return false
    this.weather.count(kind)
    return true
  }

  #latencyMs(operation: FileOperation): number {
    const slowness = this.weather.level('slow')
    if (slowness > 1) this.weather.count('slow')
    const meanMs = operation === 'sync' ? syncMsMean : latencyMsMean
    return this.#random.exponential(meanMs * Math.max(1, slowness))
  }
}

/** A process that dies in the middle of a write leaves half of it. */
const torn: FileFault = { code: 'EIO', effect: 'half' }
