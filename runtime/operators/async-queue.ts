// The order in which results and watermarks go on, while their records are in flight.

export interface Flight {
  /** Its results are there. */
  readonly done: boolean
}

export interface FlightQueue<F extends Flight> {
  /** Records that have not gone on. Without any no watermark waits either, once all that `next` gives is taken. */
  readonly size: number
  add(flight: F): void
  /** It is `done` from now on. */
  completed(flight: F): void
  /** Stands behind all records so far. */
  addWatermark(watermark: number): void
  /** Takes out what may go on next: a record's results, or a watermark. */
  next(): F | number | undefined
  /** Records that have not gone on, as they came in. */
  flights(): Iterable<F>
}

export function orderedQueue<F extends Flight>(): FlightQueue<F> {
  return new OrderedQueue()
}

export function unorderedQueue<F extends Flight>(): FlightQueue<F> {
  return new UnorderedQueue()
}

class OrderedQueue<F extends Flight> implements FlightQueue<F> {
  readonly #items: (F | number)[] = []
  size = 0

  add(flight: F): void {
    this.#items.push(flight)
    this.size++
  }

  completed(): void {
    // Its turn comes when it is the first.
  }

  addWatermark(watermark: number): void {
    // One that nothing stands before says all that the earlier one did.
    if (typeof this.#items.at(-1) === 'number') this.#items.pop()
    this.#items.push(watermark)
  }

  next(): F | number | undefined {
    const first = this.#items[0]
    if (first === undefined || (typeof first === 'object' && !first.done)) return undefined
    if (typeof first === 'object') this.size--
    return this.#items.shift()
  }

  flights(): Iterable<F> {
    return this.#items.filter((item) => typeof item === 'object')
  }
}

/** Records between two watermarks. */
interface Segment<F> {
  waiting: number
  /** In the order in which their results came. */
  readonly done: F[]
  /** Ends it; undefined: records may still come. */
  watermark: number | undefined
}

class UnorderedQueue<F extends Flight> implements FlightQueue<F> {
  readonly #segments: Segment<F>[] = []
  /** In the order in which they came in. */
  readonly #segmentOf = new Map<F, Segment<F>>()

  get size(): number {
    return this.#segmentOf.size
  }

  add(flight: F): void {
    let last = this.#segments.at(-1)
    if (last?.watermark !== undefined) last = undefined
    if (last === undefined) {
      last = { waiting: 0, done: [], watermark: undefined }
      this.#segments.push(last)
    }
    last.waiting++
    this.#segmentOf.set(flight, last)
  }

  completed(flight: F): void {
    const segment = this.#segmentOf.get(flight)!
    segment.waiting--
    segment.done.push(flight)
  }

  addWatermark(watermark: number): void {
    const last = this.#segments.at(-1)
    if (last === undefined) this.#segments.push({ waiting: 0, done: [], watermark })
    else last.watermark = watermark
  }

  next(): F | number | undefined {
    const first = this.#segments[0]
    const flight = first?.done.shift()
    if (flight !== undefined) {
      this.#segmentOf.delete(flight)
      return flight
    }
    if (first === undefined || first.waiting > 0 || first.watermark === undefined) return undefined
    this.#segments.shift()
    return first.watermark
  }

  flights(): Iterable<F> {
    return this.#segmentOf.keys()
  }
}
