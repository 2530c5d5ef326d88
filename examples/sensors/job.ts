// Endless made-up sensor readings, and alarms: a sensor that stays too hot, and one that has fallen silent. Ctrl-C stops
// it with a savepoint, from which the same command goes on.
//
//   millrace run examples/sensors/job.ts

import { boundedOutOfOrderness, defineJob, valueState, z } from 'millrace'
import { dataGenerator, printSink } from 'millrace/connectors'

const reading = z.object({
  sensor: z.int(),
  /** When it was measured, ms since the epoch. */
  time: z.int(),
  celsius: z.number(),
})
type Reading = z.infer<typeof reading>

const alarm = z.object({
  sensor: z.int(),
  kind: z.enum(['too hot', 'cool again', 'silent', 'heard again']),
  /** Event time of heat, wall clock of silence; ms since the epoch. */
  time: z.int(),
})
type Alarm = z.infer<typeof alarm>

const args = z.object({
  sensors: z.int().min(1).default(20),
  readingsPerSecond: z.number().positive().default(200),
  /** Default: endless. */
  readings: z.int().optional(),
  /** Above it a sensor is too hot. */
  celsiusMax: z.number().default(80),
  /** How long it may be too hot, in event time, before there is an alarm. */
  hotMs: z.int().default(30_000),
  /** How long nothing may be heard of it, by the wall clock. */
  silentMs: z.int().default(3_000),
})

export default defineJob({ args }, (env, { sensors, readingsPerSecond, readings, celsiusMax, hotMs, silentMs }) => {
  env
    .source(
      dataGenerator({
        create: (n) => readingOf(n, sensors),
        schema: reading,
        ratePerSecond: readingsPerSecond,
        ...(readings === undefined ? {} : { count: readings }),
      }),
      { uid: 'readings', watermarks: boundedOutOfOrderness(({ time }) => time, 5_000) },
    )
    .filter(isHeard)
    .uid('heard')
    .keyBy(({ sensor }) => sensor)
    .process(
      {
        state: {
          hotSince: valueState('hot since', z.int()),
          alarmed: valueState('alarmed', z.boolean()),
          heardUntil: valueState('heard until', z.int()),
          silent: valueState('silent', z.boolean()),
        },

        process({ sensor, time, celsius }, { state, timers, emit, processingTimeMs }) {
          const hotSince = state.hotSince.get()
          if (celsius > celsiusMax && hotSince === undefined) {
            state.hotSince.update(time)
            timers.register('event', time + hotMs)
          } else if (celsius <= celsiusMax && hotSince !== undefined) {
            const alarmAt = hotSince + hotMs
            timers.delete('event', alarmAt)
            // Event time runs behind the readings: the timer may be due and not have fired.
            const overdue = time >= alarmAt && state.alarmed.get() !== true
            if (overdue) emit({ sensor, kind: 'too hot', time: alarmAt })
            if (overdue || state.alarmed.get() === true) emit({ sensor, kind: 'cool again', time })
            state.hotSince.clear()
            state.alarmed.clear()
          }

          if (state.silent.get() === true) emit({ sensor, kind: 'heard again', time: processingTimeMs })
          state.silent.clear()
          const heardUntil = state.heardUntil.get()
          if (heardUntil !== undefined) timers.delete('processing', heardUntil)
          state.heardUntil.update(processingTimeMs + silentMs)
          timers.register('processing', processingTimeMs + silentMs)
        },

        onTimer({ domain, timestampMs }, { key, state, emit }) {
          if (domain === 'event') {
            state.alarmed.update(true)
            emit({ sensor: key, kind: 'too hot', time: timestampMs })
          } else {
            state.silent.update(true)
            state.heardUntil.clear()
            emit({ sensor: key, kind: 'silent', time: timestampMs })
          }
        },
      },
      { schema: alarm },
    )
    .uid('alarms')
    .sinkTo(printSink({ format: sentence }))
})

/** A reading each second of event time from each sensor in turn; each has a temperature of its own that swings in some minutes. */
function readingOf(n: number, sensors: number): Reading {
  const sensor = n % sensors
  const second = Math.floor(n / sensors)
  const swing = Math.sin((2 * Math.PI * second) / (120 + 10 * sensor))
  return { sensor, time: Date.UTC(2026, 0, 1) + second * 1_000, celsius: Math.round((65 + 20 * swing) * 10) / 10 }
}

/** The first sensor is out of order half of the time. */
function isHeard({ sensor, time }: Reading): boolean {
  return sensor !== 0 || Math.floor(time / 60_000) % 2 === 0
}

function sentence({ sensor, kind, time }: Alarm): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z  sensor ${sensor} is ${kind}`
}
