import { describe, expect, it } from 'vitest'
import { start } from '../base/ids.ts'
import type { HeadEnd, ManifestRef, RestorePoint } from './head-contract.ts'
import { decideLocalIdentity } from './local-identity.ts'
import type { LocalIdentity, NumberedFolder } from './local-identity.ts'
import { checkpointId } from '../base/ids.ts'
import { fileKey, manifestKey } from './paths.ts'
import { decideStart } from './start-decision.ts'
import type { StartDecision } from './start-decision.ts'

const savepoint: ManifestRef = {
  id: checkpointId(4),
  kind: 'savepoint',
  path: manifestKey(checkpointId(4), 'savepoint'),
  start: start(3),
  completedAtMs: 0,
  bytes: 1,
}

const ends: Record<HeadEnd['kind'], HeadEnd> = {
  none: { kind: 'none' },
  suspended: { kind: 'suspended' },
  stopped: { kind: 'stopped', savepoint },
  finished: { kind: 'finished' },
  failed: { kind: 'failed', reason: 'why' },
  cancelled: { kind: 'cancelled' },
}

const empty = { kind: 'empty' } as const

describe('a coordinator that reads HEAD at start 3', () => {
  it.each<[HeadEnd['kind'], number | undefined, StartDecision]>([
    ['none', 2, { kind: 'stale' }],
    ['none', 3, { kind: 'resume' }],
    ['none', 4, { kind: 'next', start: start(4) }],
    ['none', undefined, { kind: 'resume' }],
    ['suspended', 2, { kind: 'stale' }],
    ['suspended', 3, { kind: 'ended' }],
    ['suspended', 4, { kind: 'next', start: start(4) }],
    ['suspended', undefined, { kind: 'next', start: start(4) }],
    ['stopped', 3, { kind: 'ended' }],
    ['stopped', 5, { kind: 'next', start: start(5) }],
    ['stopped', undefined, { kind: 'next', start: start(4) }],
    ['finished', 3, { kind: 'ended' }],
    ['finished', 4, { kind: 'next', start: start(4) }],
    ['finished', undefined, { kind: 'ended' }],
    ['failed', 3, { kind: 'ended' }],
    ['failed', 4, { kind: 'next', start: start(4) }],
    ['failed', undefined, { kind: 'ended' }],
    ['cancelled', 2, { kind: 'stale' }],
    ['cancelled', 3, { kind: 'ended' }],
    ['cancelled', undefined, { kind: 'ended' }],
  ])('with end %s and wants start %s', (end, wanted, expected) => {
    expect(
      decideStart(
        { start: start(3), end: ends[end], restoredFrom: empty },
        { start: wanted === undefined ? undefined : start(wanted) },
      ),
    ).toEqual(expected)
  })

  it('or finds none, creates the first', () => {
    expect(decideStart(undefined, { start: undefined })).toEqual({ kind: 'first', start: 1 })
    expect(decideStart(undefined, { start: start(7) })).toEqual({ kind: 'first', start: 7 })
  })
})

describe('a local command', () => {
  const folder = (
    number: number,
    end: HeadEnd['kind'] | undefined,
    unconfirmed?: ManifestRef,
    restoredFrom: RestorePoint = empty,
  ): NumberedFolder => ({
    number,
    head: end === undefined ? undefined : { start: start(1), end: ends[end], restoredFrom, unconfirmed },
  })
  const decide = (folders: readonly NumberedFolder[], from = false) =>
    decideLocalIdentity({ name: 'flights', folders, from: from ? () => savepoint.path : undefined })

  it.each<
    [string, readonly NumberedFolder[], boolean, Omit<LocalIdentity, 'after' | 'finishFirst'> & Partial<LocalIdentity>]
  >([
    ['begins afresh without a folder', [], false, { job: 'flights' as never, number: 1, begin: 'fresh' }],
    [
      'begins afresh in a folder that never got a HEAD',
      [folder(1, undefined)],
      false,
      { job: 'flights' as never, number: 1, begin: 'fresh' },
    ],
    ['resumes what has not ended', [folder(1, 'none')], false, { job: 'flights' as never, number: 1, begin: 'resume' }],
    [
      'goes on after a suspend with the next start',
      [folder(1, 'suspended')],
      false,
      { job: 'flights' as never, number: 1, begin: 'next start' },
    ],
    [
      'goes on after a stop with the next start',
      [folder(1, 'stopped')],
      false,
      { job: 'flights' as never, number: 1, begin: 'next start' },
    ],
    [
      'begins a new job after a finished one',
      [folder(1, 'finished')],
      false,
      { job: 'flights.2' as never, number: 2, begin: 'fresh', after: 'finished' },
    ],
    [
      'begins a new job after a failed one',
      [folder(1, 'failed')],
      false,
      { job: 'flights.2' as never, number: 2, begin: 'fresh', after: 'failed' },
    ],
    [
      'finishes the permitted commits of a failed job before the new one',
      [folder(1, 'failed', savepoint)],
      false,
      { job: 'flights.2' as never, number: 2, begin: 'fresh', after: 'failed', finishFirst: 'flights' as never },
    ],
    [
      'begins a new job after a cancelled one',
      [folder(1, 'cancelled')],
      false,
      { job: 'flights.2' as never, number: 2, begin: 'fresh', after: 'cancelled', finishFirst: 'flights' as never },
    ],
    [
      'means the highest number, in whatever order they are found',
      [folder(10, 'none'), folder(2, 'finished'), folder(1, 'failed')],
      false,
      { job: 'flights.10' as never, number: 10, begin: 'resume' },
    ],
    [
      'takes no number again',
      [folder(1, 'finished'), folder(2, 'finished'), folder(11, 'finished')],
      false,
      { job: 'flights.12' as never, number: 12, begin: 'fresh', after: 'finished' },
    ],
    [
      'with --from makes a new start of a job that has not ended',
      [folder(1, 'none')],
      true,
      { job: 'flights' as never, number: 1, begin: 'next start' },
    ],
    [
      'with --from after an end that is final makes a new job',
      [folder(1, 'finished')],
      true,
      { job: 'flights.2' as never, number: 2, begin: 'fresh', after: 'finished' },
    ],
  ])('%s', (_, folders, from, expected) => {
    expect(decide(folders, from)).toEqual({ after: undefined, finishFirst: undefined, ...expected })
  })

  it('with --from is refused while the job has unconfirmed commits; those of one that is over are finished first', () => {
    for (const end of ['none', 'suspended', 'stopped'] as const)
      expect(() => decide([folder(1, end, savepoint)], true)).toThrow(/MR-S15.*savepoint-4.*flights/)
    expect(decide([folder(1, 'failed', savepoint)], true)).toMatchObject({ begin: 'fresh', finishFirst: 'flights' })
    expect(decide([folder(1, 'none', savepoint)]).begin).toBe('resume')
  })

  it('with the same --from again goes on with the start that it began, also with unconfirmed commits, until that has ended', () => {
    const begun = { kind: 'manifest', manifest: savepoint } as const
    const elsewhere = { kind: 'manifest', manifest: { ...savepoint, path: fileKey('/copy/_metadata') } } as const
    expect(decide([folder(1, 'none', undefined, begun)], true).begin).toBe('resume')
    expect(decide([folder(1, 'none', savepoint, begun)], true).begin).toBe('resume')
    expect(decide([folder(1, 'none', undefined, elsewhere)], true).begin).toBe('next start')
    expect(decide([folder(1, 'suspended', undefined, begun)], true).begin).toBe('next start')
  })

  it('after a drain begins a new job, and the drained one gets its last word first', () => {
    const end = { kind: 'stopped', savepoint: { ...savepoint, drained: true } } as const
    const drained = { number: 1, head: { start: start(1), end, restoredFrom: empty, unconfirmed: undefined } }
    expect(decide([drained])).toEqual({
      job: 'flights.2',
      number: 2,
      begin: 'fresh',
      after: 'finished',
      finishFirst: 'flights',
    })
  })
})
