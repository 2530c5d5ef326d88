import { describe, expect, it } from 'vitest'
import { readDocument } from '../crds/problems.ts'
import { streamJob } from '../crds/stream-job.ts'
import { attemptKey, canonicalJson, codeHash, revisionHash, revisionOf, rolledBackKey, specHash } from './revision.ts'
import { childName, childNameMax } from './revision-names.ts'

const program = { module: { configMap: { name: 'code', key: 'job.ts' } } }
function specOf(spec: Readonly<Record<string, unknown>> = {}) {
  const read = readDocument(streamJob, {
    apiVersion: 'millrace.dev/v1alpha1',
    kind: 'StreamJob',
    metadata: { name: 'flights' },
    spec: { program, ...spec },
  })
  if (read.kind !== 'fits') throw new Error(read.problems.map(({ message }) => message).join('\n'))
  return read.object.spec
}
const hashOf = (spec: Readonly<Record<string, unknown>> = {}) => specHash(specOf(spec))

describe('the hash of a spec', () => {
  it.each([
    { program: { ...program, args: { limit: 1 } } },
    { program: { ...program, image: 'flights:2' } },
    { program: { module: { path: '/opt/job.ts' } } },
    { maxParallelism: 64 },
    { checkpointing: { interval: '5s' } },
    { restartStrategy: { type: 'none' } },
    { storage: { checkpoints: 's3://b/p' } },
    { storage: { savepoints: 's3://b/kept' } },
    { worker: { slots: 2 } },
    { worker: { podTemplate: { metadata: { labels: { a: 'b' } } } } },
    { coordinator: { resources: { limits: { memory: '1Gi' } } } },
    { logLevel: 'debug' },
    { serviceAccountName: 'a' },
  ])('is another one for %j, which changes the processes', (spec) => {
    expect(hashOf(spec)).not.toBe(hashOf())
  })

  it.each([
    { state: 'suspended' },
    { parallelism: 4 },
    { upgradeMode: 'savepoint' },
    { restoreFrom: 's3://b/sp', restoreNonce: 1, restoreMode: 'no-claim' },
    { allowNonRestoredState: true },
    { restartNonce: 1, savepointNonce: 2, checkpointNonce: 3 },
    { savepoints: { every: '6h' } },
    { rollback: { enabled: false } },
    { deletion: { savepoint: true } },
    { ttlAfterFinished: '1h' },
  ])('is the same for %j, which does not', (spec) => {
    expect(hashOf(spec)).toBe(hashOf())
  })

  it('does not tell a default that is written from one that is left out, nor how a duration is written', () => {
    const defaults = { logLevel: 'info', checkpointing: {}, stateBackend: { type: 'heap' }, worker: { slots: 1 } }
    expect(hashOf(defaults)).toBe(hashOf())
    expect(hashOf({ program: { ...program, args: {} } })).toBe(hashOf())
    expect(hashOf({ checkpointing: { interval: '1m' } })).toBe(hashOf({ checkpointing: { interval: '60s' } }))
  })

  it('is this one for ever: another one would restart every job when the operator is upgraded', () => {
    const full = hashOf({
      program: { ...program, args: { b: 1, a: [2] } },
      checkpointing: { interval: '5s' },
      worker: { slots: 2 },
    })
    expect([hashOf(), full]).toMatchInlineSnapshot(`
      [
        "1c3325c774a1c9c2027d4cad970c794a341895a5275f83ae83741f8903594c28",
        "3793063714500f2aec0f93218553f5f420870b1230802e74791b2faff3638b75",
      ]
    `)
  })
})

describe('a revision', () => {
  it('has a hash of spec and code, and says nothing of the chart or the builder', () => {
    const of = (more: object) =>
      revisionOf({
        job: { name: 'flights', uid: 'u' },
        number: 3,
        spec: specOf(),
        specHash: hashOf(),
        image: 'millrace:1',
        code: { hash: codeHash({ 'job.ts': 'a' }), key: 'job.ts' },
        operatorVersion: '1.0.0',
        ...more,
      })
    const revision = of({})
    expect(of({ image: 'millrace:2', operatorVersion: '2.0.0' }).hash).toBe(revision.hash)
    expect(of({ spec: specOf({ storage: { checkpoints: 's3://chart/default' } }) }).hash).toBe(revision.hash)
    expect(of({ spec: specOf({ parallelism: 7 }) })).toMatchObject({ hash: revision.hash, parallelism: 7 })
    expect(of({ code: { hash: codeHash({ 'job.ts': 'b' }), key: 'job.ts' } }).hash).not.toBe(revision.hash)
    expect(of({ code: undefined }).hash).not.toBe(revision.hash)
    expect(revision).toMatchObject({ version: 1, number: 3, rendering: {} })
    expect(revision.name).toMatch(/^flights-[0-9a-f]{8}-r3$/)
    expect(revision.code?.configMap).toMatch(/^flights-[0-9a-f]{8}-code-[0-9a-f]{12}$/)
  })

  it('of files differs by names and contents', () => {
    expect(codeHash({ a: '1', b: '2' })).toBe(codeHash({ b: '2', a: '1' }))
    expect(codeHash({ a: '1' })).not.toBe(codeHash({ b: '1' }))
    expect(codeHash({ a: '12' })).not.toBe(codeHash({ a: '1', 2: '' }))
    expect(revisionHash({ specHash: 'a', code: undefined })).not.toBe(revisionHash({ specHash: 'b', code: undefined }))
  })
})

describe('a spec that was rolled back', () => {
  it('is another attempt when what runs is another, or a restart is asked for; not when only settings change, as that took the job down', () => {
    const first = rolledBackKey('h', specOf())
    for (const settings of [{ upgradeMode: 'stateless' }, { allowNonRestoredState: true }, { restoreFrom: 's3://b/a' }])
      expect(rolledBackKey('h', specOf(settings))).toBe(first)
    const others = [
      rolledBackKey('h', specOf({ restartNonce: 1 })),
      rolledBackKey('h', specOf({ restoreNonce: 1, restoreFrom: 's3://b/a' })),
      rolledBackKey('other', specOf()),
    ]
    expect(new Set([first, ...others]).size).toBe(4)
    expect(attemptKey('h', specOf())).not.toBe(first)
  })
})

describe('a spec that was refused', () => {
  it('is another attempt when what decides about its state changes, or a restart is asked for', () => {
    const keys = [
      {},
      { upgradeMode: 'stateless' },
      { allowNonRestoredState: true },
      { restartNonce: 1 },
      { restoreFrom: 's3://b/a' },
      { restoreFrom: 's3://b/a', restoreNonce: 2 },
    ].map((spec) => attemptKey('h', specOf(spec)))
    expect(new Set(keys).size).toBe(keys.length)
    expect(attemptKey('h', specOf({ parallelism: 9, logLevel: 'debug' }))).toBe(keys[0])
    expect(attemptKey('other', specOf())).not.toBe(keys[0])
  })
})

it('canonical JSON does not depend on the order of fields', () => {
  expect(canonicalJson({ b: { d: 1, c: [2, { f: 1, e: 2 }] }, a: undefined })).toBe(
    '{"b":{"c":[2,{"e":2,"f":1}],"d":1}}',
  )
})

describe('the name of a child', () => {
  it('is short, has the uid in it, and is a label', () => {
    const long = childName({ name: `${'a'.repeat(200)}.b`, uid: 'u1' }, 'code-0123456789ab')
    expect(long.length).toBeLessThanOrEqual(childNameMax)
    expect(long).toMatch(/^a+-[0-9a-f]{8}-code-0123456789ab$/)
    expect(childName({ name: 'a', uid: 'u1' }, 'worker')).not.toBe(childName({ name: 'a', uid: 'u2' }, 'worker'))
    expect(childName({ name: 'a.b', uid: 'u1' }, 'worker')).toMatch(/^a-b-[0-9a-f]{8}-worker$/)
    expect(childName({ name: `${'a'.repeat(30)}----------b`, uid: 'u' }, 'coordinator')).not.toContain('--')
  })
})
