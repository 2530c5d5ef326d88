import { describe, expect, it } from 'vitest'
import { childFact } from './child-facts.ts'
import type { KubeObject } from './kubernetes/contract.ts'

const job = { name: 'j', namespace: 'default', uid: 'u' }
function deployment(conditions: readonly object[]): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'c', namespace: 'default', uid: 'd', resourceVersion: '1' },
    status: { conditions },
  }
}

describe('a workload', () => {
  it('says why the cluster lets it make no pods, for as long as that is so', () => {
    const failure = { type: 'ReplicaFailure', reason: 'FailedCreate', message: 'pods "c-1" is forbidden: no quota' }
    const refused = (status: string): unknown =>
      childFact(
        deployment([
          { type: 'Available', status: 'False' },
          { ...failure, status },
        ]),
        job,
        true,
      ).podsRefused
    expect(refused('True')).toBe(failure.message)
    expect(refused('False')).toBeUndefined()
    expect(childFact(deployment([]), job, true).podsRefused).toBeUndefined()
    const { status: _, ...bare } = deployment([])
    expect(childFact(bare as KubeObject, job, true).podsRefused).toBeUndefined()
  })

  it.each([
    { kind: 'StatefulSet', generation: 2, status: { observedGeneration: 2, replicas: 1 }, missing: 2 },
    { kind: 'StatefulSet', generation: 2, status: { observedGeneration: 2, replicas: 3 }, missing: 0 },
    // On the way down.
    { kind: 'StatefulSet', generation: 2, status: { observedGeneration: 2, replicas: 4 }, missing: 0 },
    // Its controller does not know yet how many are asked for.
    { kind: 'StatefulSet', generation: 2, status: { observedGeneration: 1, replicas: 1 }, missing: 0 },
    { kind: 'StatefulSet', generation: 1, status: undefined, missing: 0 },
    { kind: 'Deployment', generation: 2, status: { observedGeneration: 2, replicas: 1 }, missing: 0 },
  ])('lacks pods: $kind at generation $generation, $status', ({ kind, generation, status, missing }) => {
    const object = {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name: 'w', namespace: 'default', uid: 'w', resourceVersion: '1', generation },
      spec: { replicas: 3 },
      status,
    }
    expect(childFact(object as KubeObject, job, true).podsMissing).toBe(missing)
  })
})
