import { assert, nat, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, subtaskIndex } from '../base/ids.ts'
import {
  snapshotDataKey,
  headFile,
  historyKey,
  isTransactionOf,
  localCodeFolder,
  localJobId,
  localJobsFolder,
  localStoreFolder,
  manifestKey,
  parseHeadFile,
  parseHistoryKey,
  parseLocalJobFolder,
  parseObjectKey,
  parseS3Key,
  parseStorageAddress,
  parseTransactionName,
  s3Key,
  sharedDataKey,
  snapshotPlace,
  transactionName,
} from './paths.ts'

describe('object keys', () => {
  it('have one form for each kind of object', () => {
    expect(manifestKey(checkpointId(7), 'checkpoint')).toBe('chk-7/_metadata')
    expect(manifestKey(checkpointId(8), 'savepoint')).toBe('savepoint-8/_metadata')
    expect(snapshotDataKey(checkpointId(7), 'checkpoint', 'ab12')).toBe('chk-7/ab12')
    expect(sharedDataKey('ab12')).toBe('shared/ab12')
    expect(historyKey(incarnation(3), 12)).toBe('history/3-12')
  })

  it('of histories are told from whatever else lies there', () => {
    expect(parseHistoryKey('history/3-12')).toEqual({ incarnation: 3, number: 12 })
    for (const key of ['history/3-012', 'history/3', 'history/0-1', 'history/3-1/x', 'chk-3/1-1', 'history/3-1.tmp'])
      expect(parseHistoryKey(key)).toBeUndefined()
  })

  it.each([
    '',
    '/',
    'a//b',
    '/a',
    'a/',
    '../a',
    'a/../b',
    '.hidden',
    'a/.temporary/b',
    'ä',
    'a b',
    'a:b',
    'x'.repeat(129),
  ])('refuse %j', (key) => {
    expect(() => parseObjectKey(key)).toThrow(/MR-S04/)
  })

  it.each(['a', 'chk-7/_metadata', 'a=b/c_d-e.f', 'x'.repeat(128)])('take %j', (key) => {
    expect(parseObjectKey(key)).toBe(key)
  })
})

describe('places in S3', () => {
  it('are addresses of a bucket with or without a prefix', () => {
    expect(parseStorageAddress('s3://bucket/jobs/one/')).toEqual({ kind: 's3', bucket: 'bucket', prefix: 'jobs/one' })
    expect(parseStorageAddress('s3://bucket')).toEqual({ kind: 's3', bucket: 'bucket', prefix: '' })
    expect(parseStorageAddress('file:///jobs/one')).toEqual({ kind: 'file', folder: '/jobs/one' })
    expect(parseStorageAddress('file:///')).toEqual({ kind: 'file', folder: '/' })
  })

  it('are keys that parse back', () => {
    const place = { bucket: 'bucket', key: 'jobs/one/objects/chk-7/_metadata' }
    expect(parseS3Key(s3Key(place))).toEqual(place)
    expect(parseS3Key('chk-7/_metadata')).toBeUndefined()
  })

  it('of a snapshot are told by its folder, or by the manifest in it', () => {
    const inStore = {
      manifest: 's3://bucket/jobs/one/objects/chk-7/_metadata',
      folder: 'chk-7',
      storeFolder: 's3://bucket/jobs/one',
    }
    expect(snapshotPlace('s3://bucket/jobs/one/objects/chk-7')).toEqual(inStore)
    expect(snapshotPlace('s3://bucket/jobs/one/objects/chk-7/_metadata')).toEqual(inStore)
    expect(snapshotPlace('s3://objects/savepoint-3/')).toEqual({
      manifest: 's3://objects/savepoint-3/_metadata',
      folder: 'savepoint-3',
      storeFolder: undefined,
    })
    expect(snapshotPlace('/jobs/one/objects/chk-7')).toMatchObject({
      manifest: 'file:///jobs/one/objects/chk-7/_metadata',
      storeFolder: '/jobs/one',
    })
    expect(snapshotPlace('file:///jobs/one/objects/chk-7')).toEqual(snapshotPlace('/jobs/one/objects/chk-7'))
    expect(() => snapshotPlace('file://host/objects/chk-7')).toThrow(/^MR-S04 /)
  })
})

describe('names of HEAD files', () => {
  it('sort as their numbers do and parse back', () => {
    expect([headFile(9), headFile(100), headFile(10)].toSorted()).toEqual([headFile(9), headFile(10), headFile(100)])
    expect(parseHeadFile(headFile(123))).toBe(123)
    expect(parseHeadFile('head-1')).toBeUndefined()
    expect(parseHeadFile('.temporary')).toBeUndefined()
  })
})

describe('local job ids', () => {
  it('number later jobs of a name', () => {
    expect(localJobId('flights', 1)).toBe('flights')
    expect(localJobId('default/flights', 3)).toBe('default/flights.3')
    expect(localStoreFolder(localJobId('flights', 2))).toBe('.millrace/flights.2')
    expect(parseLocalJobFolder('flights', 'flights')).toBe(1)
    expect(parseLocalJobFolder('flights', 'flights.12')).toBe(12)
    for (const other of ['flights.1', 'flights.02', 'flights.x', 'flights2', 'other', 'flights.2.3'])
      expect(parseLocalJobFolder('flights', other)).toBeUndefined()
  })

  it('of a namespace lie in its folder', () => {
    expect(localJobsFolder('default/flights')).toBe('.millrace/default')
    expect(localJobsFolder('flights')).toBe('.millrace')
    expect(localStoreFolder(localJobId('default/flights', 2))).toBe('.millrace/default/flights.2')
    expect(parseLocalJobFolder('default/flights', 'flights')).toBe(1)
    expect(parseLocalJobFolder('default/flights', 'flights.12')).toBe(12)
    expect(parseLocalJobFolder('default/flights', 'default')).toBeUndefined()
  })

  it('never meet the parts of a store, though a job has the name of a namespace', () => {
    for (const name of ['default/head', 'default/objects', 'default/probe-1', 'default/code-1'])
      expect(() => localJobId(name, 1)).toThrow(/MR-S04/)
    expect(localJobId('head', 1)).toBe('head')
    expect(localCodeFolder('default/flights', 'abc')).toBe('.millrace/default/flights/code-abc')
  })

  it('refuse names that could be another job’s later id, or lead out of the folder', () => {
    for (const name of ['flights.2', 'default/flights.2', '../x', '', 'a b', '.x', 'default/', '/x'])
      expect(() => localJobId(name, 1)).toThrow(/MR-S04/)
  })
})

describe('transaction names', () => {
  const identity = {
    job: jobId('default/flights.2'),
    uid: 'sink_1 é',
    attempt: { incarnation: incarnation(3), number: 14 },
    subtask: subtaskIndex(2),
    checkpoint: checkpointId(77),
  }

  it('are safe as file names and have a pinned form', () => {
    expect(transactionName(identity)).toBe('mr1_default=2Fflights.2_sink=5F1=20=C3=A9_3.14_2_77')
  })

  it('are told from those of other jobs and sinks, and from foreign names', () => {
    const name = transactionName(identity)
    expect(isTransactionOf(name, identity)).toBe(true)
    expect(isTransactionOf(name, { ...identity, uid: 'other' })).toBe(false)
    expect(isTransactionOf(name, { ...identity, job: jobId('other') })).toBe(false)
    expect(isTransactionOf('part-1', identity)).toBe(false)
  })

  it('parse back whatever the job and the uid are', () => {
    assert(
      property(
        string({ minLength: 1, maxLength: 5, unit: 'binary' }),
        string({ minLength: 1, maxLength: 5, unit: 'binary' }),
        nat(),
        nat(),
        (job, uid, number, checkpoint) => {
          const made = {
            ...identity,
            job: jobId(job),
            uid,
            attempt: { incarnation: incarnation(1), number },
            checkpoint: checkpointId(checkpoint),
          }
          expect(parseTransactionName(transactionName(made))).toEqual(made)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('of others are not ours', () => {
    for (const name of [
      '',
      'mr1_a_b_1.1_1',
      'mr2_a_b_1.1_1_1',
      'mr1_a_b_01.1_1_1',
      'mr1_=61_b_1.1_1_1',
      'mr1_a_b_1.1_1_1_1',
      'mr1_=FF_b_1.1_1_1',
      'x mr1_a_b_1.1_1_1',
    ]) {
      expect(parseTransactionName(name)).toBeUndefined()
    }
  })

  it('that external systems would cut are refused', () => {
    expect(() => transactionName({ ...identity, uid: 'x'.repeat(200) })).toThrow(/MR-S05/)
  })
})
