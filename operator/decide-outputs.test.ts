import { describe, expect, it } from 'vitest'
import type { PodFact } from './contract.ts'
import { adminAnswer, disposalAnswer, preflightAnswer } from './decide-outputs.ts'

const createdAt = '2026-01-01T00:00:00.000Z'
const nowMs = Date.parse(createdAt) + 15_000
function pod(more: Partial<PodFact>): PodFact {
  return {
    kind: 'Pod',
    namespace: 'default',
    name: 'close-1',
    uid: 'p',
    resourceVersion: '1',
    component: 'admin',
    revision: 'r1',
    purpose: 'admin-close',
    request: 'r',
    createdAt,
    node: 'n',
    nodeLost: false,
    nodeSilent: false,
    phase: 'Succeeded',
    ready: false,
    deletingSince: undefined,
    graceSeconds: 30,
    trouble: undefined,
    exitCode: 0,
    output: undefined,
    ...more,
  }
}
const job = {
  id: 'u',
  start: 3,
  incarnation: 9,
  parallelism: 2,
  maxParallelism: 128,
  restarts: 0,
  restorePoint: {
    kind: 'manifest',
    manifest: { id: 7, kind: 'checkpoint', path: 's3://b/chk-7', start: 3, completedAtMs: 1, bytes: 1, drained: false },
  },
  end: { kind: 'suspended' },
  unconfirmed: null,
}
const said = (report: object): Partial<PodFact> => ({ output: `job code prints too\n${JSON.stringify(report)}\n` })

describe('what an admin pod printed', () => {
  it('is where HEAD is', () => {
    expect(adminAnswer(pod(said({ command: 'close', outcome: 'done', job })), nowMs)).toEqual({
      kind: 'head',
      head: {
        start: 3,
        parallelism: 2,
        end: 'suspended',
        reason: undefined,
        restorePoint: { kind: 'checkpoint', path: 's3://b/chk-7', id: 7, madeBy: 3, start: 3, unconfirmed: false },
      },
    })
    const empty = {
      ...job,
      restorePoint: { kind: 'empty' },
      unconfirmed: job.restorePoint.manifest,
      end: { kind: 'failed', reason: 'x' },
    }
    expect(adminAnswer(pod(said({ command: 'close', outcome: 'nothing to do', job: empty })), nowMs)).toMatchObject({
      head: { end: 'failed', reason: 'x', restorePoint: { kind: 'empty', start: 3, unconfirmed: true } },
    })
  })

  it('is "none" only if it says so', () => {
    expect(adminAnswer(pod(said({ outcome: 'none', job: null })), nowMs)).toEqual({ kind: 'none' })
    for (const output of [undefined, '', 'null', '{}', '{"outcome":"non', '{"outcome":"done","job":null}'])
      expect(adminAnswer(pod({ output }), nowMs)).toMatchObject({ kind: 'failed' })
    expect(adminAnswer(pod({ phase: 'Failed', exitCode: 137 }), nowMs)).toEqual({
      kind: 'failed',
      refused: false,
      why: 'pod close-1 ended (code 137) without an answer',
    })
  })

  it('that was refused or unclear is a failure with its reason', () => {
    const error = { code: 'MR-S01', message: 'the store did not answer' }
    expect(adminAnswer(pod(said({ outcome: 'unclear', job: null, error })), nowMs)).toEqual({
      kind: 'failed',
      refused: false,
      why: error.message,
    })
    expect(adminAnswer(pod(said({ outcome: 'refused', job, error })), nowMs)).toMatchObject({ refused: true })
    expect(adminAnswer(pod({ phase: 'Running', ...said({ outcome: 'none', job: null }) }), nowMs)).toEqual({
      kind: 'running',
    })
  })

  it('of one that cannot be started is a failure with what the kubelet says, unless it still waits for a node', () => {
    const trouble = { reason: 'ImagePullBackOff', message: 'no such image' }
    const why = 'ImagePullBackOff: no such image'
    const stuck = pod({ phase: 'Pending', trouble })
    expect(adminAnswer(stuck, nowMs - 1)).toEqual({ kind: 'running' })
    expect(adminAnswer(stuck, nowMs)).toEqual({ kind: 'failed', refused: false, why })
    expect(disposalAnswer(stuck, nowMs)).toMatchObject({ kind: 'failed', why })
    expect(adminAnswer({ ...stuck, trouble: undefined }, nowMs)).toEqual({ kind: 'running' })
    const unscheduled = { reason: 'Unschedulable', message: 'no node has room' }
    expect(adminAnswer({ ...stuck, node: undefined, trouble: unscheduled }, nowMs + 3_600_000)).toEqual({
      kind: 'running',
    })
  })

  it('of a disposal needs no HEAD', () => {
    expect(disposalAnswer(pod(said({ outcome: 'done', job: null })), nowMs)).toEqual({ kind: 'done' })
    expect(disposalAnswer(pod(said({ outcome: 'nothing to do', job: null })), nowMs)).toEqual({ kind: 'nothing' })
    expect(disposalAnswer(pod(said({ outcome: 'none', job: null })), nowMs)).toMatchObject({ kind: 'failed' })
    expect(disposalAnswer(pod({ phase: 'Pending' }), nowMs)).toEqual({ kind: 'running' })
  })
})

describe('what a preflight pod printed', () => {
  const atMs = (ms: number): number => Date.parse(createdAt) + ms
  it('is yes, no with every reason, or nothing known', () => {
    expect(preflightAnswer(pod(said({ answer: 'yes', reasons: [] })), atMs(0))).toEqual({ kind: 'yes' })
    const reasons = [
      { code: 'MR-O19', message: 'One.' },
      { code: null, message: 'Two.' },
    ]
    expect(preflightAnswer(pod({ phase: 'Failed', exitCode: 3, ...said({ answer: 'no', reasons }) }), atMs(0))).toEqual(
      {
        kind: 'no',
        reasons: 'One. Two.',
      },
    )
    expect(
      preflightAnswer(pod({ phase: 'Failed', exitCode: 4, ...said({ answer: 'could not run', reasons }) }), atMs(0)),
    ).toEqual({
      kind: 'could not run',
      why: 'One. Two.',
    })
    expect(preflightAnswer(pod({ phase: 'Failed', exitCode: 137 }), atMs(0))).toMatchObject({ kind: 'could not run' })
  })

  it('is waited for a minute', () => {
    const trouble = { reason: 'Unschedulable', message: 'no node has room' }
    expect(preflightAnswer(pod({ phase: 'Pending', trouble }), atMs(59_999))).toEqual({ kind: 'running' })
    expect(preflightAnswer(pod({ phase: 'Pending', trouble }), atMs(60_000))).toEqual({
      kind: 'could not run',
      why: 'Unschedulable: no node has room',
    })
  })
})
