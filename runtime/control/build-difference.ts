// What two processes of a job run, and what of it differs. Pure.

/** Of which one line of text is made, and taken apart again. */
const parts = {
  start: 'job.start',
  code: 'the job file',
  args: 'job.args',
  size: 'job.parallelism or job.maxParallelism',
  settings: 'job.settings',
} as const

export type BuildParts = Readonly<Record<keyof typeof parts, string>>

export function buildText(build: BuildParts): string {
  return Object.keys(parts)
    .map((name) => `${name}=${build[name as keyof BuildParts]}`)
    .join(' ')
}

/** In words, for two texts that are not the same. Of the start both values are told; of the others there are digests alone. */
export function buildDifference(own: string, theirs: string): string {
  const [here, there] = [partsOf(own), partsOf(theirs)]
  const differing = Object.entries(parts).filter(([name]) => here.get(name) !== there.get(name))
  const words = differing.map(([name, said]) =>
    name === 'start' && there.has(name) ? `${said} (${there.get(name)} there, ${here.get(name)} here)` : said,
  )
  return words.length === 0 ? 'It names what it runs in another form.' : `Different: ${words.join(', ')}.`
}

function partsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split(' ').map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]))
}
