// The conformance suite of sources: nothing lost or doubled at any cut, parallelism or failure of a reader.

import type { Claim } from './conformance.ts'
import { World } from './conformance-source-world.ts'
import type { SourceCase } from './conformance-source-world.ts'
import { demandSame, spread } from './conformance-support.ts'

/** Cuts that are tried per claim: each reads the source once more. */
const CUTS = 12
export function sourceClaims<T, Split, State>(given: SourceCase<T, Split, State>): readonly Claim[] {
  const keys = given.expected.map(given.keyOf)
  const cuts = spread(keys.length, CUTS)
  return [
    {
      name: `${given.name}: one reader gets every record exactly once, and the end only after the last`,
      run: async () => {
        const world = new World(given, 1)
        demandSame(await world.runToEnd(), keys, 'one reader')
        await world.close()
      },
    },
    {
      name: `${given.name}: three readers together get every record exactly once`,
      run: async () => {
        const world = new World(given, 3)
        demandSame(await world.runToEnd(), keys, 'three readers')
        await world.close()
      },
    },
    {
      name: `${given.name}: a snapshot at any record, restored, goes on with exactly the rest`,
      run: async () => {
        for (const cut of cuts) await cutAndRestore({ given, keys, cut, before: 1, after: 1 })
      },
    },
    {
      name: `${given.name}: a snapshot restored at another parallelism goes on with exactly the rest`,
      run: async () => {
        for (const cut of cuts) await cutAndRestore({ given, keys, cut, before: 2, after: 3 })
        for (const cut of cuts) await cutAndRestore({ given, keys, cut, before: 3, after: 1 })
      },
    },
    {
      name: `${given.name}: a failed reader's splits, restored or given back, are read exactly once`,
      run: async () => {
        await failOneReader(given, keys, undefined)
        for (const cut of cuts) await failOneReader(given, keys, cut)
      },
    },
    {
      name: `${given.name}: an enumerator restored from an older snapshot and told who owns what hands out no split twice`,
      run: async () => {
        await adopt(given, keys, undefined)
        for (const cut of cuts) await adopt(given, keys, cut)
      },
    },
    {
      name: `${given.name}: a snapshot restored twice gives the same rest twice, also while the reader of before still reads`,
      run: async () => {
        for (const cut of cuts) await replay(given, keys, cut)
      },
    },
    {
      name: `${given.name}: a reader that has nothing wakes its task when it has something, or has come to its end`,
      run: async () => {
        for (const parallelism of [1, 3]) {
          const world = new World(given, parallelism)
          world.pollOnlyWhenWoken()
          demandSame(await world.runToEnd(), keys, `${parallelism} readers, polled when they wake`)
          await world.close()
        }
      },
    },
    {
      name: `${given.name}: the readers that are left read everything when splits of a failed one are given back again and again`,
      run: async () => {
        for (const cut of cuts) await failOften(given, keys, cut)
      },
    },
  ]
}

interface CutOptions<T, Split, State> {
  readonly given: SourceCase<T, Split, State>
  readonly keys: readonly string[]
  readonly cut: number
  readonly before: number
  readonly after: number
}

async function cutAndRestore<T, Split, State>({
  given,
  keys,
  cut,
  before,
  after,
}: CutOptions<T, Split, State>): Promise<void> {
  const first = new World(given, before)
  const head = await first.run(cut)
  const snapshot = first.snapshot()
  // What comes after the snapshot dies with the attempt.
  await first.run(3)
  await first.close()
  const second = new World(given, after, snapshot)
  const tail = await second.runToEnd()
  await second.close()
  demandSame([...head, ...tail], keys, `cut after ${cut} records, ${before} to ${after} readers`)
}

/** `cut` undefined: there was no checkpoint yet, and all that was assigned is given back. */
async function failOneReader<T, Split, State>(
  given: SourceCase<T, Split, State>,
  keys: readonly string[],
  cut: number | undefined,
): Promise<void> {
  const world = new World(given, 2)
  const head = cut === undefined ? [] : await world.run(cut)
  if (cut !== undefined) world.markCheckpoint()
  await world.run(Math.ceil(keys.length / 4))
  const kept = await world.failReader(0)
  const tail = await world.runToEnd()
  await world.close()
  demandSame([...head, ...kept, ...tail], keys, `reader 0 failed ${behind(cut)}`)
}

/** A source reads, it does not take away: what one life has read, another must be able to read again. */
async function replay<T, Split, State>(
  given: SourceCase<T, Split, State>,
  keys: readonly string[],
  cut: number,
): Promise<void> {
  const first = new World(given, 2)
  const head = await first.run(cut)
  const snapshot = first.snapshot()
  const before = await first.run(3)
  for (const time of ['first', 'second']) {
    const again = new World(given, 2, snapshot)
    const tail = await again.runToEnd()
    await again.close()
    demandSame([...head, ...tail], keys, `restored for the ${time} time after ${cut} records`)
  }
  demandSame([...head, ...before, ...(await first.runToEnd())], keys, `the life of before, cut after ${cut} records`)
  await first.close()
}

/** Each failure before the next checkpoint begins again where the last one did. */
async function failOften<T, Split, State>(
  given: SourceCase<T, Split, State>,
  keys: readonly string[],
  cut: number,
): Promise<void> {
  const world = new World(given, 3)
  const read = await world.run(cut)
  world.markCheckpoint()
  for (const failing of [0, 1, 0]) {
    await world.run(Math.ceil(keys.length / 8))
    await world.failReader(failing)
  }
  await world.runToEnd()
  const rest = world.sinceCheckpoint()
  await world.close()
  demandSame([...read, ...rest], keys, `readers failed three times after a checkpoint at ${cut} records`)
}

async function adopt<T, Split, State>(
  given: SourceCase<T, Split, State>,
  keys: readonly string[],
  cut: number | undefined,
): Promise<void> {
  const world = new World(given, 2)
  const head = cut === undefined ? [] : await world.run(cut)
  if (cut !== undefined) world.markCheckpoint()
  const middle = await world.run(Math.ceil(keys.length / 4))
  await world.replaceEnumerator()
  const tail = await world.runToEnd()
  await world.close()
  demandSame([...head, ...middle, ...tail], keys, `coordinator lost ${behind(cut)}`)
}

function behind(cut: number | undefined): string {
  return cut === undefined ? 'before the first checkpoint' : `after a checkpoint at ${cut} records`
}
