// Pods as decisions see them. Pure.

import type { PodFact, PodPurpose } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { componentLabel, purposeLabel, requestAnnotation, revisionLabel } from './resources/labels.ts'
import { timeMs, timeText } from './status-time.ts'

interface PodStatus {
  readonly phase?: PodFact['phase']
  readonly reason?: string
  readonly message?: string
  readonly conditions?: readonly {
    readonly type: string
    readonly status: string
    readonly reason?: string
    readonly message?: string
  }[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
}

interface ContainerStatus {
  readonly name: string
  readonly state?: ContainerState
  readonly lastState?: ContainerState
}

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string }
}

/** On its way, which is no trouble. */
const usualWaits: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])
const messageMax = 500

export interface PodView {
  readonly object: KubeObject
  readonly isNodeLost: (node: string) => boolean
  /** What it printed, if that was read. */
  readonly output: string | undefined
  /** Of what it cannot begin without. The kubelet says it of some in its events alone. */
  readonly missing: PodFact['trouble']
}

export function podFact({ object, isNodeLost, output, missing }: PodView): PodFact {
  const { metadata } = object
  const { labels = {}, annotations = {}, deletionTimestamp, deletionGracePeriodSeconds } = metadata
  const { nodeName } = (object['spec'] ?? {}) as { readonly nodeName?: string }
  const status = statusOf(object)
  const purpose = labels[purposeLabel]
  return {
    kind: 'Pod',
    namespace: metadata.namespace!,
    name: metadata.name,
    uid: metadata.uid!,
    resourceVersion: metadata.resourceVersion!,
    component: labels[componentLabel] as PodFact['component'],
    revision: labels[revisionLabel] ?? '',
    purpose: purpose as PodPurpose | undefined,
    request: annotations[requestAnnotation],
    createdAt: metadata.creationTimestamp ?? '',
    node: nodeName,
    nodeLost: nodeName !== undefined && (isNodeLost(nodeName) || isEvictedByLoss(status)),
    nodeSilent: nodeName !== undefined && isNodeLost(nodeName),
    phase: status.phase ?? 'Pending',
    ready: isTrue(status, 'Ready'),
    deletingSince:
      deletionTimestamp === undefined
        ? undefined
        : timeText(timeMs(deletionTimestamp) - (deletionGracePeriodSeconds ?? 0) * 1_000),
    graceSeconds: deletionTimestamp === undefined ? undefined : (deletionGracePeriodSeconds ?? 0),
    trouble: missing ?? troubleOf(status),
    exitCode: terminatedOf(object)?.exitCode,
    output,
  }
}

/** What the kubelet kept of the end of a short pod's container: with an error, the last of its log. */
export function terminatedOf(object: KubeObject): { readonly exitCode: number; readonly message?: string } | undefined {
  return statusOf(object).containerStatuses?.[0]?.state?.terminated
}

export function hasEnded(object: KubeObject): boolean {
  const { phase } = statusOf(object)
  return phase === 'Succeeded' || phase === 'Failed'
}

function statusOf(object: KubeObject): PodStatus {
  return object['status'] ?? {}
}

function isTrue({ conditions = [] }: PodStatus, type: string): boolean {
  return conditions.find((condition) => condition.type === type)?.status === 'True'
}

/** Without the right to read nodes: the taint manager says that it was it, or the node controller. */
function isEvictedByLoss({ reason, conditions = [] }: PodStatus): boolean {
  if (reason === 'NodeLost') return true
  const target = conditions.find(({ type }) => type === 'DisruptionTarget')
  return target?.status === 'True' && target.reason === 'DeletionByTaintManager'
}

function troubleOf(status: PodStatus): PodFact['trouble'] {
  const { conditions = [], containerStatuses = [], initContainerStatuses = [], phase, reason, message } = status
  for (const { name, state, lastState } of [...initContainerStatuses, ...containerStatuses]) {
    const waiting = state?.waiting
    if (waiting?.reason === undefined || usualWaits.has(waiting.reason)) continue
    const last = lastState?.terminated
    const ended =
      last === undefined
        ? undefined
        : `container ${name} ended with code ${last.exitCode}${last.message === undefined ? '' : `: ${lastLineOf(last.message)}`}`
    // The kubelet's word of a back-off counts seconds: each would be another message.
    const said = waiting.reason === 'CrashLoopBackOff' ? ended : (waiting.message ?? ended)
    return { reason: waiting.reason, message: cut(said ?? `container ${name} waits`) }
  }
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False')
    return { reason: scheduled.reason ?? 'NotScheduled', message: cut(scheduled.message ?? 'it has no node') }
  if (phase === 'Failed') return { reason: reason ?? 'Failed', message: cut(message ?? 'the pod failed') }
  return undefined
}

function lastLineOf(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}

function cut(text: string): string {
  return text.length <= messageMax ? text : `${text.slice(0, messageMax - 1)}…`
}
