// A job's own metrics, counted in plain fields and read when the subtask reports. In a report each stands under
// `user/<uid>/<kind>/<name>`, a histogram's figures with one part more; neither uids nor names hold a slash.

import type { Environment } from '../base/environment.ts'
import type { MetricGroup } from '../base/metrics.ts'
import { operatorError } from './errors.ts'
import { HistogramSketch } from './histogram-sketch.ts'
import type { Counter, Histogram, UserMetrics } from './user-metrics-contract.ts'

/** Of one operator. All of them are in each report. */
const metricsMax = 200

export interface UserMetricsOptions {
  readonly uid: string
  /** Of the subtask. */
  readonly metrics: MetricGroup
  readonly environment: Pick<Environment, 'log'>
}

/** Those of one operator. */
export function createUserMetrics(options: UserMetricsOptions): UserMetrics {
  return new OperatorMetrics(options)
}

type Metric =
  | { readonly kind: 'counter'; readonly counter: Counter }
  | { readonly kind: 'gauge' }
  | { readonly kind: 'histogram'; readonly histogram: Histogram }

class OperatorMetrics implements UserMetrics {
  readonly #options: UserMetricsOptions
  readonly #known = new Map<string, Metric>()

  constructor(options: UserMetricsOptions) {
    this.#options = options
  }

  counter(name: string): Counter {
    const known = this.#known.get(name)
    if (known?.kind === 'counter') return known.counter
    this.#admit(name, 'counter')
    const counter = new FieldCounter()
    this.#known.set(name, { kind: 'counter', counter })
    this.#observe(`counter/${name}`, () => counter.count)
    return counter
  }

  gauge(name: string, read: () => number): void {
    if (this.#known.get(name)?.kind !== 'gauge') this.#admit(name, 'gauge')
    this.#known.set(name, { kind: 'gauge' })
    let broken = false
    this.#observe(`gauge/${name}`, () => {
      if (broken) return Number.NaN
      try {
        return read()
      } catch (error) {
        broken = true
        const { environment, uid } = this.#options
        environment.log('warn', 'a gauge threw and is not asked again', { uid, name, error: String(error) })
        return Number.NaN
      }
    })
  }

  histogram(name: string): Histogram {
    const known = this.#known.get(name)
    if (known?.kind === 'histogram') return known.histogram
    this.#admit(name, 'histogram')
    const sketch = new HistogramSketch()
    this.#known.set(name, { kind: 'histogram', histogram: sketch })
    for (const part of ['count', 'sum', 'min', 'max'] as const)
      this.#observe(`histogram/${name}/${part}`, () => sketch[part])
    for (const percent of [50, 95, 99])
      this.#observe(`histogram/${name}/p${percent}`, () => sketch.quantile(percent / 100))
    return sketch
  }

  /** The name is new and can be one. */
  #admit(name: string, kind: Metric['kind']): void {
    const { uid } = this.#options
    if (!this.#known.has(name) && this.#known.size >= metricsMax)
      throw operatorError('MR-J73', `The ${kind} '${name}' of operator '${uid}' would be number ${metricsMax + 1}.`)
    if (!/^[a-z][a-z0-9_]{0,99}$/.test(name))
      throw operatorError('MR-J72', `The ${kind} '${name}' of operator '${uid}'.`)
    const other = this.#known.get(name)
    if (other !== undefined)
      throw operatorError('MR-J72', `The ${kind} '${name}' of operator '${uid}' is already a ${other.kind}.`)
  }

  #observe(name: string, read: () => number): void {
    this.#options.metrics.observe(`user/${this.#options.uid}/${name}`, read)
  }
}

class FieldCounter implements Counter {
  count = 0

  increment(by = 1): void {
    this.count += by
  }
}
