// The short table at the end: made from the files that the job wrote.

import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FinishedJob } from 'millrace'

const airportsShown = 10
const routesShown = 10

interface AirportHour {
  readonly airport: string
  readonly departures: number
  readonly meanDelay: number
}

export async function flightsSummary({ job, args }: FinishedJob<{ readonly output: string }>): Promise<string> {
  const folder = join(args.output, job)
  const airports = new Map<string, { departures: number; totalDelay: number }>()
  let hours = 0
  for await (const text of filesOf(join(folder, 'airport-hours'))) {
    for (const line of linesOf(text)) {
      const { airport, departures, meanDelay } = JSON.parse(line) as AirportHour
      const total = airports.get(airport) ?? { departures: 0, totalDelay: 0 }
      total.departures += departures
      total.totalDelay += meanDelay * departures
      airports.set(airport, total)
      hours++
    }
  }
  const busiest = [...airports].toSorted(([, left], [, right]) => right.departures - left.departures)

  const routes: string[][] = []
  for await (const text of filesOf(join(folder, 'worst-routes')))
    routes.push(
      ...linesOf(text)
        .slice(1)
        .map((line) => line.split(',')),
    )
  const worst = routes.filter(([, rank]) => rank === '1').toSorted((left, right) => Number(right[5]) - Number(left[5]))

  return [
    `${hours} airport hours and ${routes.length} daily worst routes are in ${folder}.`,
    '',
    ...table(
      ['airport', 'departures', 'mean delay'],
      busiest
        .slice(0, airportsShown)
        .map(([airport, { departures, totalDelay }]) => [
          airport,
          String(departures),
          `${(totalDelay / departures).toFixed(1)} min`,
        ]),
    ),
    '',
    ...table(
      ['day', 'worst route', 'flights', 'mean delay'],
      worst
        .slice(0, routesShown)
        .map(([day = '', , origin, destination, flights = '', meanDelay]) => [
          day,
          `${origin} to ${destination}`,
          flights,
          `${Number(meanDelay).toFixed(1)} min`,
        ]),
    ),
  ].join('\n')
}

/** Committed files only: what is not committed yet is hidden in `.pending`. */
async function* filesOf(folder: string): AsyncGenerator<string> {
  const names = await readdir(folder)
  for (const name of names.toSorted()) if (name.startsWith('part-')) yield await readFile(join(folder, name), 'utf8')
}

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n')
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)))
  const line = (cells: readonly string[]): string =>
    `  ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join('   ')}`
  return [line(header), ...rows.map(line)]
}
