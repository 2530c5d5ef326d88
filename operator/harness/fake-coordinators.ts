// Coordinators and HEADs of many jobs in one place, for tests of the operator: what REST and the admin commands would answer. A coordinator is
// there while its pod runs; its job is at once as large as it should be, and completes a checkpoint whenever a test's setting says so.

import type { CoordinatorAddress, CoordinatorDial } from '../coordinator-client.ts'
import type { KubeClient, KubeObject } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import { purposeLabel, requestAnnotation } from '../resources/labels.ts'
import { placeOf } from './stub-kubelet.ts'

export interface FakeManifest {
  readonly id: number
  readonly kind: 'checkpoint' | 'savepoint'
  readonly path: string
  readonly start: number
  readonly completedAtMs: number
  readonly bytes: number
  readonly drained: boolean
}

export interface FakeHead {
  start: number
  incarnation: number
  end: 'none' | 'suspended' | 'stopped' | 'finished' | 'failed' | 'cancelled'
  reason: string
  restoredFrom: FakeManifest | undefined
  completed: FakeManifest[]
  stoppedWith: FakeManifest | undefined
  parallelism: number
  requests: Map<
    string,
    {
      readonly state: string
      readonly detail?: string
      readonly savepoint?: FakeManifest
      readonly checkpoint?: FakeManifest
    }
  >
  /** Uids of worker pods: another one of the name is not lost. */
  lost: Set<string>
}

export interface FakeStart {
  readonly uid: string
  readonly start: number
  readonly from: string
  readonly pod: string
}

export class FakeCoordinators {
  readonly heads = new Map<string, FakeHead>()
  /** Each start that began, in order. */
  readonly starts: FakeStart[] = []
  readonly requests: { readonly uid: string; readonly path: string; readonly body: unknown }[] = []
  /** Whether a start completes a checkpoint by itself. */
  completes: (uid: string, start: number) => boolean = () => true
  preflight: 'yes' | 'no' | 'could not run' = 'yes'
  isSilent = false
  #pods: readonly KubeObject[] = []
  #configs: readonly KubeObject[] = []
  readonly #client: Pick<KubeClient, 'list'>
  readonly #namespace: string
  readonly #wallMs: () => number

  constructor(client: Pick<KubeClient, 'list'>, namespace: string, wallMs: () => number) {
    this.#client = client
    this.#namespace = namespace
    this.#wallMs = wallMs
  }

  /** Looks at the cluster: coordinators whose pods run have begun. */
  async pass(): Promise<void> {
    const namespace = this.#namespace
    const labelSelector = 'app.kubernetes.io/managed-by=millrace'
    this.#pods = (await this.#client.list(types.pod, { namespace, labelSelector })).items
    this.#configs = (await this.#client.list(types.configMap, { namespace, labelSelector })).items
    for (const pod of this.#pods) if (isRunning(pod, 'coordinator')) this.#begin(pod)
  }

  #begin(pod: KubeObject): void {
    const { uid, start } = placeOf(pod)
    const head = this.heads.get(uid)
    // An older start, or one that has ended, runs nothing (protocol.md 2).
    if (head !== undefined && head.start >= start) return
    const { job } = this.#configOf(uid, start)
    const from =
      job.restore?.empty === true
        ? undefined
        : job.restore?.from === undefined
          ? head && restorePointOf(head)
          : this.manifest(uid, { start: 0, kind: 'savepoint', id: 0, path: job.restore.from })
    this.heads.set(uid, {
      start,
      incarnation: (head?.incarnation ?? 0) + 1,
      end: 'none',
      reason: '',
      restoredFrom: from,
      completed: [],
      stoppedWith: undefined,
      parallelism: job.parallelism,
      requests: head?.requests ?? new Map<string, never>(),
      lost: new Set(),
    })
    this.starts.push({ uid, start, from: from?.path ?? 'empty', pod: pod.metadata.name })
  }

  #configOf(uid: string, start: number) {
    const found = this.#configs.find((config) => {
      const place = placeOf(config)
      return place.uid === uid && place.component === 'config' && place.start === start
    })
    const { 'process.json': text } = (found?.['data'] ?? {}) as Readonly<Record<string, string>>
    if (text === undefined) throw new Error(`start ${start} has no process.json`)
    return JSON.parse(text) as {
      readonly job: {
        readonly parallelism: number
        readonly restore?: { readonly from?: string; readonly empty?: boolean }
      }
    }
  }

  manifest(uid: string, made: Pick<FakeManifest, 'start' | 'kind' | 'id'> & { readonly path?: string }): FakeManifest {
    const { start, kind, id } = made
    const path = made.path ?? `s3://bucket/${uid}/${kind === 'savepoint' ? 'savepoint' : 'chk'}-${id}`
    return { id, kind, path, start, completedAtMs: this.#wallMs(), bytes: 100, drained: false }
  }

  #next(uid: string, kind: FakeManifest['kind']): FakeManifest {
    const head = this.heads.get(uid)!
    const ids = [...head.completed, head.restoredFrom, head.stoppedWith].map((one) => one?.id ?? 0)
    return this.manifest(uid, { kind, start: head.start, id: Math.max(0, ...ids) + 1 })
  }

  complete(uid: string): FakeManifest {
    const made = this.#next(uid, 'checkpoint')
    this.heads.get(uid)!.completed.push(made)
    return made
  }

  // ---- REST ----

  readonly dial: CoordinatorDial = (address) => ({
    call: async (method, path, body) => {
      await Promise.resolve()
      const uid = this.#at(address)
      if (uid === undefined || this.isSilent) throw new Error(`${address.host}: nobody listens`)
      return this.#answer(uid, { method, path, body: body as Readonly<Record<string, unknown>> | undefined })
    },
    close: () => undefined,
  })

  #at({ host }: CoordinatorAddress): string | undefined {
    const [name, namespace] = host.split('.')
    const pod = this.#pods.find(
      (one) =>
        isRunning(one, 'coordinator') &&
        one.metadata.namespace === namespace &&
        one.metadata.name.startsWith(`${name}-`),
    )
    return pod && placeOf(pod).uid
  }

  #answer(
    uid: string,
    {
      method,
      path,
      body,
    }: { readonly method: string; readonly path: string; readonly body: Readonly<Record<string, unknown>> | undefined },
  ): { readonly status: number; readonly body: unknown } {
    const head = this.heads.get(uid)
    if (head === undefined) throw new Error('nobody listens')
    const ok = (answer: unknown) => ({ status: 200, body: answer })
    if (method === 'GET') {
      if (head.end === 'none' && head.completed.length === 0 && this.completes(uid, head.start)) this.complete(uid)
      if (path === '/v1/job') return ok(this.#job(uid, head))
      if (path === '/v1/checkpoints') return ok(checkpointsOf(head))
      if (path === '/v1/workers')
        return ok({ slotsNeeded: null, slotsOffered: null, workers: this.#workers(uid, head) })
      if (path === '/v1/health')
        return ok({ ready: true, storage: { state: 'ok', detail: null }, nats: { state: 'ok', detail: null } })
      const request = head.requests.get(decodeURIComponent(path.split('/').at(-1)!))
      return request === undefined ? { status: 404, body: { code: 'MR-H02', message: 'no such request' } } : ok(request)
    }
    this.requests.push({ uid, path, body })
    if (body?.['start'] !== head.start)
      return { status: 409, body: { code: 'MR-H08', message: `this is start ${head.start}` } }
    const request = String(body['request'])
    if (path === '/v1/close' || path === '/v1/cancel') {
      if (head.end === 'none') head.end = path === '/v1/close' ? 'suspended' : 'cancelled'
      return { status: 202, body: { end: null } }
    }
    if (path === '/v1/stop' || path === '/v1/savepoints') {
      if (!head.requests.has(request)) {
        const savepoint = this.#next(uid, 'savepoint')
        head.requests.set(request, { state: 'completed', savepoint })
        if (path === '/v1/stop') {
          head.end = 'stopped'
          head.stoppedWith = savepoint
        }
      }
      return { status: 202, body: { request, state: 'pending' } }
    }
    if (path === '/v1/rescale') {
      const parallelism = Number(body['parallelism'])
      head.parallelism = parallelism
      head.requests.set(request, { state: 'completed', checkpoint: this.complete(uid) })
      return { status: 202, body: { request, state: 'pending' } }
    }
    if (path === '/v1/checkpoints') {
      this.complete(uid)
      return { status: 202, body: {} }
    }
    const worker = /^\/v1\/workers\/(.+)\/lost$/.exec(path)?.[1]
    const pod = this.#workerPods(uid).find(({ metadata: { name } }) => name === decodeURIComponent(worker ?? ''))
    if (pod !== undefined) head.lost.add(pod.metadata.uid!)
    return { status: 202, body: {} }
  }

  #job(uid: string, head: FakeHead): object {
    const point = restorePointOf(head)
    return {
      id: uid,
      instance: 'fake',
      start: head.start,
      incarnation: head.incarnation,
      state: head.end === 'none' ? 'running' : 'ended',
      parallelism: head.parallelism,
      maxParallelism: 128,
      restarts: 0,
      restorePoint: point === undefined ? { kind: 'empty' } : { kind: 'manifest', manifest: point },
      end: endOf(head),
      unconfirmed: null,
      sinceMs: 0,
      waitsFor: null,
      slotsNeeded: head.parallelism,
      slotsOffered: this.#workers(uid, head).filter(({ state }) => state === 'registered').length,
      restore: null,
      lastFailure: null,
    }
  }

  #workers(uid: string, { lost }: FakeHead): readonly { readonly state: string }[] {
    return this.#workerPods(uid).map(({ metadata }) => ({
      name: metadata.name,
      address: '',
      slots: 1,
      running: [],
      state: lost.has(metadata.uid!) ? 'lost' : 'registered',
      sinceMs: 0,
    }))
  }

  #workerPods(uid: string): readonly KubeObject[] {
    return this.#pods.filter((pod) => placeOf(pod).uid === uid && placeOf(pod).component === 'worker')
  }

  // ---- short pods ----

  answerOf(pod: KubeObject): { readonly output: string; readonly exitCode: number } | undefined {
    const { labels = {}, annotations = {} } = pod.metadata
    const { uid } = placeOf(pod)
    const head = this.heads.get(uid)
    const said = (output: object, exitCode = 0) => ({ output: `started\n${JSON.stringify(output)}\n`, exitCode })
    switch (labels[purposeLabel]) {
      case 'preflight':
        return said(
          {
            answer: this.preflight,
            reasons: this.preflight === 'yes' ? [] : [{ code: 'MR-C01', message: 'A uid is gone.' }],
          },
          this.preflight === 'yes' ? 0 : this.preflight === 'no' ? 3 : 4,
        )
      case 'admin-close':
        if (head !== undefined) head.end = endOfClosing(pod, head)
        return said({
          command: 'close',
          outcome: head === undefined ? 'none' : 'done',
          job: head ? summaryOf(head) : null,
        })
      case 'admin-restore-point':
        return said({
          command: 'restore-point',
          outcome: head === undefined ? 'none' : 'found',
          job: head ? summaryOf(head) : null,
        })
      default:
        return said({
          command: annotations[requestAnnotation] ?? '',
          outcome: 'done',
          job: head ? summaryOf(head) : null,
        })
    }
  }
}

/** As `millrace admin close` does it: an end that is set stays, unless the job is deleted. */
function endOfClosing(pod: KubeObject, { end }: FakeHead): FakeHead['end'] {
  const { containers } = pod['spec'] as { readonly containers: readonly { readonly command?: readonly string[] }[] }
  if (containers.some(({ command = [] }) => command.includes('--deleted'))) return 'cancelled'
  return end === 'none' ? 'suspended' : end
}

function isRunning(pod: KubeObject, component: string): boolean {
  const { phase } = (pod['status'] ?? {}) as { readonly phase?: string }
  return placeOf(pod).component === component && phase === 'Running' && pod.metadata.deletionTimestamp === undefined
}

export function restorePointOf({ stoppedWith, completed, restoredFrom, start }: FakeHead): FakeManifest | undefined {
  return stoppedWith ?? completed.findLast((one) => one.start === start) ?? restoredFrom
}

function endOf({ end, reason, stoppedWith }: FakeHead): object {
  if (end === 'stopped') return { kind: end, savepoint: stoppedWith }
  if (end === 'failed') return { kind: end, reason }
  return end === 'finished' ? { kind: end, drained: null } : { kind: end }
}

function summaryOf(head: FakeHead): object {
  const point = restorePointOf(head)
  return {
    start: head.start,
    incarnation: head.incarnation,
    parallelism: head.parallelism,
    restorePoint: point === undefined ? { kind: 'empty' } : { kind: 'manifest', manifest: point },
    end: endOf(head),
    unconfirmed: null,
  }
}

function checkpointsOf({ completed, end }: FakeHead): object {
  return {
    counters: { triggered: completed.length, completed: completed.length, failed: 0, consecutiveFailures: 0 },
    intervalMs: 10_000,
    pending: null,
    retained: completed,
    completed: completed.map((one) => ({ ...one, durationMs: 12, subtasks: null })),
    failed: [],
    ended: end,
  }
}
