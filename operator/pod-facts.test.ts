import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { podFact } from './pod-facts.ts'
import { PodOutputs } from './pod-outputs.ts'

function pod(status: object, more: { metadata?: object; spec?: object } = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      namespace: 'n',
      uid: 'u',
      resourceVersion: '5',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'app.kubernetes.io/component': 'worker', 'millrace.dev/revision': 'r1' },
      ...more.metadata,
    },
    spec: more.spec ?? {},
    status,
  }
}
const fact = (object: KubeObject, lost: readonly string[] = []) =>
  podFact({ object, output: undefined, missing: undefined, isNodeLost: (node) => lost.includes(node) })

describe('a pod', () => {
  it('says why it does not run, in words that do not change with time', () => {
    const waiting = (reason: string, message: string, lastState = {}) =>
      fact(
        pod({
          phase: 'Pending',
          containerStatuses: [{ name: 'worker', state: { waiting: { reason, message } }, lastState }],
        }),
      ).trouble
    expect(waiting('ContainerCreating', '')).toBeUndefined()
    expect(waiting('ImagePullBackOff', 'Back-off pulling image "x"')).toEqual({
      reason: 'ImagePullBackOff',
      message: 'Back-off pulling image "x"',
    })
    const crashed = { terminated: { exitCode: 2, message: 'started\nMR-L02 no file\n' } }
    expect(waiting('CrashLoopBackOff', 'back-off 40s restarting', crashed)).toEqual({
      reason: 'CrashLoopBackOff',
      message: 'container worker ended with code 2: MR-L02 no file',
    })
    const unscheduled = {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }],
    }
    expect(fact(pod(unscheduled)).trouble).toEqual({ reason: 'Unschedulable', message: '0/1 nodes' })
    expect(fact(pod({ phase: 'Failed', reason: 'Evicted', message: 'low on memory' })).trouble).toEqual({
      reason: 'Evicted',
      message: 'low on memory',
    })
    expect(fact(pod({ phase: 'Running' })).trouble).toBeUndefined()
  })

  it('is deleted since it was asked to go, not since its grace is over', () => {
    const metadata = { deletionTimestamp: '2026-01-01T00:01:00Z', deletionGracePeriodSeconds: 30 }
    expect(fact(pod({ phase: 'Running' }, { metadata }))).toMatchObject({
      deletingSince: '2026-01-01T00:00:30.000Z',
      graceSeconds: 30,
    })
    expect(fact(pod({ phase: 'Running' }))).toMatchObject({ deletingSince: undefined, graceSeconds: undefined })
  })

  it('has lost its node by the node, or by who evicted it', () => {
    const at = { spec: { nodeName: 'a' } }
    expect(fact(pod({ phase: 'Running' }, at)).nodeLost).toBe(false)
    expect(fact(pod({ phase: 'Running' }, at), ['a'])).toMatchObject({ nodeLost: true, nodeSilent: true })
    const evicted = {
      phase: 'Running',
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }],
    }
    // A taint may be a person's: the kubelet of that node may be well.
    expect(fact(pod(evicted, at))).toMatchObject({ nodeLost: true, nodeSilent: false })
    const drained = {
      phase: 'Running',
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }],
    }
    expect(fact(pod(drained, at)).nodeLost).toBe(false)
  })
})

describe('what a short pod printed', () => {
  const labels = { 'millrace.dev/purpose': 'preflight' }
  const ended = (message?: string) =>
    pod(
      {
        phase: 'Succeeded',
        containerStatuses: [
          { name: 'command', state: { terminated: { exitCode: 0, ...(message !== undefined && { message }) } } },
        ],
      },
      { metadata: { labels } },
    )
  function subject(log: () => string) {
    const { clock } = manualEnvironment()
    let reads = 0
    const outputs = new PodOutputs(
      {
        logs: async () => {
          reads++
          return log()
        },
      },
      clock,
    )
    return { outputs, clock, reads: () => reads }
  }

  it('is the last answer in its log, read once when it has ended, whatever is logged behind it', async () => {
    const { outputs, reads } = subject(() => 'hello\n{"answer":"yes"}\n{"level":"info"}\n')
    expect(await outputs.of(pod({ phase: 'Running' }, { metadata: { labels } }))).toBeUndefined()
    expect(await outputs.of(ended())).toBe('{"answer":"yes"}')
    expect(await outputs.of(ended())).toBe('{"answer":"yes"}')
    expect(reads()).toBe(1)
    expect(await outputs.of(pod({ phase: 'Failed' }))).toBeUndefined()
  })

  it('is what the kubelet kept of it, where that is an answer', async () => {
    const { outputs, reads } = subject(() => '')
    expect(await outputs.of(ended('log\n{"outcome":"refused"}\n'))).toBe('{"outcome":"refused"}')
    expect(reads()).toBe(0)
  })

  it('is nothing, at once, where its container never ran', async () => {
    const { outputs } = subject(() => {
      throw new KubeError(400, 'BadRequest', 'container "command" in pod "close-1" is terminated')
    })
    expect(await outputs.of(ended('The container could not be located when the pod was terminated'))).toBeUndefined()
  })

  it('is waited for, for a bounded time: a kubelet that does not answer is not a pod without an answer', async () => {
    const { outputs, clock } = subject(() => {
      throw new KubeError(500, 'InternalError', 'kubelet is away')
    })
    await expect(outputs.of(ended())).rejects.toThrow('away')
    clock.advance(19_000)
    await expect(outputs.of(ended())).rejects.toThrow('away')
    clock.advance(2_000)
    expect(await outputs.of(ended())).toBeUndefined()
  })
})
