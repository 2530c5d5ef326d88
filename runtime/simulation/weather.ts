// How bad things are just now: each kind of trouble has a level until a time, and none after it.

import type { World } from './world.ts'

export class Weather<Kind extends string> {
  /** How often each kind of trouble really did something to somebody. */
  readonly counts = new Map<Kind, number>()
  readonly name: string
  readonly #world: World
  readonly #troubles = new Map<Kind, { readonly level: number; readonly untilMs: number }>()
  readonly #foreseen: {
    readonly kind: Kind
    readonly level: number
    readonly fromMs: number
    readonly untilMs: number
  }[] = []

  constructor(world: World, name: string) {
    this.#world = world
    this.name = name
  }

  /** A chance in [0, 1], or what else the kind takes for a level, for `durationMs` from now. */
  disturb(kind: Kind, level: number, durationMs: number): void {
    this.#troubles.set(kind, { level, untilMs: this.#world.nowMs + durationMs })
    this.#world.tell(() => `${this.name}: ${kind} at ${level.toFixed(2)} for ${durationMs.toFixed(0)} ms`)
  }

  /** The same from a later moment on. No step of the world begins it, so that nothing else changes by it. */
  foresee(kind: Kind, level: number, { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number }): void {
    this.#foreseen.push({ kind, level, fromMs, untilMs })
    this.#world.tell(
      () => `${this.name}: ${kind} at ${level.toFixed(2)} from ${fromMs.toFixed(0)} to ${untilMs.toFixed(0)} ms`,
    )
  }

  /** 0 when there is no such trouble now. */
  level(kind: Kind): number {
    const { nowMs } = this.#world
    const trouble = this.#troubles.get(kind)
    const foreseen = this.#foreseen.find((each) => each.kind === kind && each.fromMs <= nowMs && nowMs < each.untilMs)
    return trouble === undefined || trouble.untilMs <= nowMs ? (foreseen?.level ?? 0) : trouble.level
  }

  /** Ends all trouble. */
  calm(): void {
    this.#troubles.clear()
    this.#foreseen.length = 0
  }

  count(kind: Kind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  get happened(): number {
    let sum = 0
    for (const count of this.counts.values()) sum += count
    return sum
  }
}
