// Three million real flights: how each airport did hour by hour, and each day's ten worst routes.
//
//   millrace run examples/flights/job.ts
//   millrace run examples/flights/job.ts --arg input=other.parquet --arg output=out/other

import { fileURLToPath } from 'node:url'
import { defineJob, monotonic, tumblingWindows, z } from 'millrace'
import { csvFileSink, jsonLineFileSink, parquetFiles } from 'millrace/connectors'
import { flightsSummary } from './summary.ts'

const flight = z.object({
  /** Scheduled departure, ms since the epoch. */
  date: z.int(),
  /** Of the arrival, minutes; negative when early. */
  delay: z.int(),
  origin: z.string(),
  destination: z.string(),
})

/** Minutes. A window's are kept whole: a percentile needs them. */
const delays = z.array(z.int())

const airportHour = z.object({
  airport: z.string(),
  hour: z.string(),
  departures: z.int(),
  meanDelay: z.number(),
  p95Delay: z.int(),
})

const routeTotal = z.object({ flights: z.int(), totalDelay: z.int() })

const routeDay = z.object({
  /** Its first ms. */
  day: z.int(),
  /** `<origin>-<destination>` */
  route: z.string(),
  flights: z.int(),
  meanDelay: z.number(),
})
type RouteDay = z.infer<typeof routeDay>

const rankedRoute = z.object({
  day: z.string(),
  rank: z.int(),
  origin: z.string(),
  destination: z.string(),
  flights: z.int(),
  meanDelay: z.number(),
})

const hour = tumblingWindows({ sizeMs: 3_600_000 })
const day = tumblingWindows({ sizeMs: 86_400_000 })

/** With fewer flights one late aircraft makes a whole route look bad. */
const flightsPerDayMin = 10
const worstRoutesPerDay = 10

const args = z.object({
  /** A Parquet file with the columns date, delay, origin and destination, sorted by date. */
  input: z
    .string()
    .default(() => fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')))),
  /** Results go to a folder below it that has the job's id as its name. */
  output: z.string().default('out'),
})

export default defineJob({ args, summary: flightsSummary }, (env, { input, output }) => {
  const flights = env.source(parquetFiles({ path: input, schema: flight }), {
    uid: 'flights',
    watermarks: monotonic(({ date }) => date),
  })

  flights
    .keyBy(({ origin }) => origin)
    .window(hour)
    .aggregate(
      {
        create: (): number[] => [],
        add: (hourly, { delay }) => {
          hourly.push(delay)
          return hourly
        },
        result: (hourly) => statisticsOf(hourly),
      },
      {
        accumulator: delays,
        schema: airportHour,
        process: (airport, { startMs }, statistics) => ({ airport, hour: isoTime(startMs), ...statistics }),
      },
    )
    .uid('airport-hours')
    .sinkTo(jsonLineFileSink({ folder: `${output}/${env.job}/airport-hours` }))
    .uid('airport-hour-files')

  flights
    .keyBy(({ origin, destination }) => `${origin}-${destination}`)
    .window(day)
    .aggregate(
      {
        create: (): z.infer<typeof routeTotal> => ({ flights: 0, totalDelay: 0 }),
        add: (total, { delay }) => {
          total.flights++
          total.totalDelay += delay
          return total
        },
        result: ({ flights, totalDelay }) => ({ flights, meanDelay: totalDelay / flights }),
      },
      {
        accumulator: routeTotal,
        schema: routeDay,
        process: (route, { startMs }, total) => ({ day: startMs, route, ...total }),
      },
    )
    .uid('route-days')
    .filter(({ flights }) => flights >= flightsPerDayMin)
    .uid('busy-routes')
    .keyBy(({ day }) => day)
    .window(day)
    .aggregate(
      {
        create: (): RouteDay[] => [],
        add: (worst, route) => [...worst, route].toSorted(worstFirst).slice(0, worstRoutesPerDay),
        result: (worst) => [...worst],
      },
      { accumulator: z.array(routeDay), schema: z.array(routeDay) },
    )
    .uid('worst-routes')
    .flatMap((worst) => worst.map(ranked), { schema: rankedRoute })
    .uid('ranks')
    .sinkTo(
      csvFileSink({
        folder: `${output}/${env.job}/worst-routes`,
        columns: ['day', 'rank', 'origin', 'destination', 'flights', 'meanDelay'],
      }),
    )
    .uid('worst-route-files')
})

/** The 95th percentile is a delay that occurred, as by SQL's percentile_disc. */
function statisticsOf(values: readonly number[]): { departures: number; meanDelay: number; p95Delay: number } {
  const sorted = Float64Array.from(values).sort()
  let total = 0
  for (const delay of sorted) total += delay
  const departures = sorted.length
  return { departures, meanDelay: total / departures, p95Delay: sorted[Math.ceil((departures * 95) / 100) - 1]! }
}

/** Equal means are put in the order of their names, so that the ten are the same at any parallelism. */
function worstFirst(left: RouteDay, right: RouteDay): number {
  if (left.meanDelay !== right.meanDelay) return right.meanDelay - left.meanDelay
  return left.route < right.route ? -1 : 1
}

function ranked({ day, route, flights, meanDelay }: RouteDay, index: number): z.infer<typeof rankedRoute> {
  const [origin = '', destination = ''] = route.split('-')
  return { day: isoTime(day).slice(0, 10), rank: index + 1, origin, destination, flights, meanDelay }
}

function isoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
