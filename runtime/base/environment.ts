// What the runtime may ask of the world. Only the outermost edge (main files, local/platform) has real ones;
// the simulation has seeded ones. Every await in the runtime rests on one of these.

import type { FailpointName } from './failpoints.ts'
import type { PlantedFault } from './planted.ts'

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Milliseconds of a monotonic clock with an arbitrary start; compared only within one process. */
  nowMs(): number
  /** Milliseconds since the epoch; for processing time and for people, never compared between hosts. */
  wallMs(): number
  /** Runs `callback` once after `delayMs`, in a turn of its own. */
  timer(delayMs: number, callback: () => void): Timer
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** 32 lower-case hexadecimal digits that nobody has used before. */
  id(): string
}

/** Turns of this thread's event loop. */
export interface Executor {
  /** Runs `turn` in a later turn of the event loop, after I/O had a chance. Turns of one executor run one at a time. */
  post(turn: () => void): void
}

/** Bounds a slice of work; asked often, cheap. */
export interface SliceBudget {
  begin(): void
  shouldYield(): boolean
}

/** Named places where tests and the simulation kill or fail a process; a no-op in production. */
export interface Failpoints {
  /** May throw, or (in the simulation) never return to this process. */
  hit(name: FailpointName): void
}

export interface Environment {
  readonly clock: Clock
  readonly random: Random
  readonly executor: Executor
  readonly budget: SliceBudget
  readonly failpoints: Failpoints
  /** Faults planted on purpose so that the simulation can show that it catches them; empty in production. */
  readonly planted: ReadonlySet<PlantedFault>
  /** Structured log line. Never secrets. */
  readonly log: (
    level: 'debug' | 'info' | 'warn' | 'error',
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ) => void
}
