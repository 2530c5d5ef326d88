// A store that does not honour conditions is refused before anything rests on it (rule 1): two coordinators would both win.

import type { Environment } from '../base/environment.ts'
import type { MillraceError } from '../base/errors.ts'
import type { HeadStore, ObjectStore, SwapAnswer } from './contract.ts'
import { storageError } from './errors.ts'
import { probeKey } from './paths.ts'

export interface ProbedStores {
  readonly objects: ObjectStore
  /** Of the same kind and place as the job's HEAD, but nobody's: the probe swaps it. */
  readonly scratchHead: HeadStore
  readonly environment: Pick<Environment, 'random'>
}

/** Resolves when the store passed. Throws MR-S06 when it did not, MR-S01 (retryable) when an answer was unclear. */
export async function probeStores({ objects, scratchHead, environment }: ProbedStores): Promise<void> {
  await probeObjects(objects, environment)
  await probeHead(scratchHead)
}

async function probeObjects(objects: ObjectStore, environment: Pick<Environment, 'random'>): Promise<void> {
  const key = probeKey(environment.random.id())
  const first = text('the first')
  expectOf((await objects.create(key, first)) === 'created', 'it says that a new name is taken')
  try {
    expectOf(
      (await objects.create(key, text('the other'))) === 'exists',
      'it created an object over another of the same name',
    )
    expectOf(same(await objects.read(key), first), 'an object does not read back as it was written')
    expectOf(
      same(await objects.readRange(key, 4, 5), first.subarray(4, 9)),
      'part of an object does not read back as it was written',
    )
    expectOf((await objects.list(key)).includes(key), 'it does not list an object that it has')
  } finally {
    await objects.delete([key])
  }
  expectOf((await objects.read(key)) === undefined, 'a deleted object is still there')
}

async function probeHead(head: HeadStore): Promise<void> {
  const first = won(await head.swap(undefined, text('1')), 'a first write was refused')
  expectOf(lost(await head.swap(undefined, text('1 again'))), 'a write that demanded absence replaced what was there')
  won(await head.swap(first, text('2')), 'a swap of the current version was refused')
  expectOf(lost(await head.swap(first, text('2 again'))), 'a swap that demanded an older version went through')
  const read = await head.read()
  expectOf(read !== undefined && same(read.bytes, text('2')), 'it does not read back the newest version')
}

function won(answer: SwapAnswer, otherwise: string) {
  if (answer.outcome === 'won') return answer.version
  throw answer.outcome === 'unclear' ? unclear(answer.cause) : refused(otherwise)
}

function lost(answer: SwapAnswer): boolean {
  if (answer.outcome === 'unclear') throw unclear(answer.cause)
  return answer.outcome === 'lost'
}

function expectOf(holds: boolean, otherwise: string): void {
  if (!holds) throw refused(otherwise)
}

function refused(because: string): MillraceError {
  return storageError('MR-S06', `In the probe ${because}.`)
}

function unclear(cause: unknown): MillraceError {
  return storageError('MR-S01', 'Probing the store.', cause)
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

function same(left: Uint8Array | undefined, right: Uint8Array): boolean {
  return left !== undefined && left.length === right.length && left.every((byte, index) => byte === right[index])
}
