// What runs in the model world of the tests: the controllers of Kubernetes, kubelets, short pods, the coordinator and its job, each in a few
// lines. It is a model of versions, ownership and HEAD, not of server-side apply, CEL or garbage collection, about which nothing is claimed here.

import type {
  ChildFact,
  CodeFact,
  CoordinatorFact,
  CoordinatorRequest,
  Observed,
  PodFact,
  PodPurpose,
  Revision,
  StartBegin,
  StreamJobStatus,
} from './contract.ts'
import type { SavepointFact } from './savepoint-contract.ts'
import { START_IN_RENDERING } from './contract.ts'
import { manifestAt, manifestOf, restorePointOf } from './decide-world-head.ts'
import type { Head, Manifest } from './decide-world-head.ts'
import { codeHash } from './revision.ts'
import { timeText } from './status-time.ts'

export const uid = 'b2c0e7e4-0000-4000-8000-000000000001'

export type Spec = Readonly<Record<string, unknown>>

export interface Pod {
  fact: PodFact
  /** Of a coordinator: which start its config names, and whether it has read HEAD. */
  configStart: number
  begin: StartBegin
  hasBegun: boolean
  looks: number
  arguments: readonly string[]
}

/** What was done to the world, for invariants. */
export type Deed =
  | {
      readonly deed: 'began'
      readonly start: number
      readonly from: string
      /** As its config said. */
      readonly begin: StartBegin
      readonly headBefore: Head | undefined
      readonly revision: string
    }
  | { readonly deed: 'took down'; readonly what: string; readonly to: number }
  | { readonly deed: 'savepoint'; readonly request: string; readonly stops: boolean }
  | { readonly deed: 'record'; readonly why: string }
  | { readonly deed: 'event'; readonly reason: string; readonly message: string }
  /** A Savepoint object was deleted, and its files go with it where its disposal says so. */
  | { readonly deed: 'deleted savepoint'; readonly savepoint: SavepointFact; readonly restorePoint: string | undefined }
  | { readonly deed: 'touched foreign'; readonly what: string }

const coordinatorKey = 'Deployment/coordinator'
export const workerKey = 'StatefulSet/worker'
export const childKeys = [`ConfigMap/config-${START_IN_RENDERING}`, 'Service/coordinator', coordinatorKey, workerKey]

export const awayText = 'the ledger at http://ledger:8080 did not answer in 30 s'

/** A worker is ready in its second, and known to the coordinator a while later. */
const registeredAfterLooks = 3

export class Cluster {
  nowMs = Date.parse('2026-01-01T00:00:00Z')
  version = 1
  job:
    | { generation: number; spec: Spec; finalizers: string[]; deletingSince: string | undefined; version: number }
    | undefined
  status: StreamJobStatus | undefined
  namespaceTerminating = false
  code: CodeFact = { kind: 'files', configMap: 'code', hash: codeHash({ 'job.ts': 'v1' }), keys: ['job.ts'] }
  operatorVersion = '1.0.0'
  /** The builder of today: what it makes of a new revision. */
  builder = 'b1'
  revisions: Revision[] = []
  /** Those that somebody has deleted: pods and workloads go by them as before. */
  lostRevisions: Revision[] = []
  children = new Map<string, ChildFact & { begin?: StartBegin }>()
  pods: Pod[] = []
  head: Head | undefined
  savepoints: SavepointFact[] = []
  /** Paths of all that coordinators have written. */
  readonly savepointsWritten = new Set<string>()
  lostWorkers: Observed['lostWorkers'] = []
  /** By uid: the API server does not let them be taken away by force. */
  readonly refusedPods = new Map<string, string>()
  deeds: Deed[] = []
  /** Somebody has asked for a start from nothing. */
  wasAskedForStateless = false
  writes = 0
  /** The operator dies after so many writes. */
  killAfter = Number.POSITIVE_INFINITY
  // What is broken.
  storageIsDown = false
  natsIsDown = false
  coordinatorIsSilent = false
  /** For pods of coordinators alone. */
  coordinatorHasNoNode = false
  coordinatorPodsAreRefused = false
  podsCannotBeMade = false
  /** The cache does not show them, and the API server does not answer who asks for one by its name. */
  revisionsAreUnread = false
  savepointObjectsCannotBeMade = false
  preflightSays: 'yes' | 'no' | 'could not run' = 'yes'
  savepointsFail = false
  savepointsHang = false
  checkpointsStop = false
  checkpointsFail = false
  checkpointEveryMs = 5_000
  /** Of the start that runs: the job's restarts, and what its restore has read. */
  restarts = 0
  restoredBytes: () => readonly number[] = () => []
  /** The coordinator's clock differs from the operator's by so much. */
  clockAheadMs = 0
  /** The coordinator cannot commit; an admin pod can. */
  commitsAreStuck = false
  /** Nobody can. */
  sinkIsAway = false
  shortPodsHaveNoNode = false
  checkpointing: 'on' | 'off' | undefined = 'on'
  endOfInput = false
  /** Slots that the graph needs for each of its parallelism: its slot-sharing groups. */
  slotsPerSize = 1
  /** The size of HEAD's last rescale that the coordinator's graph was built for. */
  builtFor: number | undefined
  jobFails = false
  /** Slots that nodes have room for. */
  room = 100
  completedAtMs = 0
  readonly askedNames = new Set<string>()
  /** Checkpoints that the operator knows to have asked this coordinator for: its request has no name there, and no answer. */
  readonly askedCheckpoints = new Set<string>()
  isCheckpointDue = false
  lastFailed: CoordinatorFact['snapshots']['lastFailed']

  // ---- the coordinator ----

  request(request: CoordinatorRequest): void {
    const process = this.coordinatorProcess()
    if (process === undefined || this.coordinatorIsSilent || this.head === undefined) return
    const head = this.head
    if (request.start !== head.start) return
    if (this.askedNames.has(request.request)) return
    this.version++
    this.askedNames.add(request.request)
    switch (request.type) {
      case 'close':
      case 'cancel':
        // The coordinator does it in its next turn.
        head.results[request.request] = { state: 'pending', detail: request.type }
        return
      case 'lost':
        this.lostWorkers = this.lostWorkers.filter(({ name }) => name !== request.worker)
        return
      case 'checkpoint':
        this.askedCheckpoints.add(request.request)
        this.isCheckpointDue = true
        return
      default:
        if (head.end !== 'none') head.results[request.request] = { state: 'ended' }
        else
          head.results[request.request] ??= {
            state: 'pending',
            detail: request.type,
            ...(request.type === 'rescale' && { id: request.parallelism }),
          }
    }
  }

  coordinatorProcess(): Pod | undefined {
    return this.pods.find(
      ({ fact }) => fact.component === 'coordinator' && fact.ready && fact.deletingSince === undefined,
    )
  }

  coordinatorFact(): Observed['coordinator'] {
    const pod = this.coordinatorProcess()
    if (pod === undefined || this.coordinatorIsSilent) return { known: false, why: 'connection refused' }
    const { head } = this
    const services = { storageAnswers: !this.storageIsDown, natsAnswers: !this.natsIsDown }
    if (head === undefined || !pod.hasBegun) return { known: false, why: 'it has not begun', services }
    const isRunning = this.runs()
    const isBuilt = this.builtFor === head.rescaledTo
    const last = head.completed.at(-1)
    return {
      known: true,
      value: {
        start: head.start,
        incarnation: 1,
        state: head.end !== 'none' ? 'ended' : !isRunning ? 'starting' : isBuilt ? 'running' : 'restarting',
        end: head.end,
        reason: head.end === 'failed' ? 'MR-O01 The job failed. User code threw.' : undefined,
        restorePoint: restorePointOf(head),
        restarts: this.restarts,
        parallelism: head.rescaledTo ?? head.parallelism,
        slotsNeeded: isBuilt ? this.slotsNeeded(head) : undefined,
        slotsOffered: this.slots(),
        workers: this.readyWorkers().map(({ fact }) => ({ name: fact.name, state: 'registered' })),
        checkpointing: this.checkpointing,
        lastCheckpoint: last && {
          id: last.id,
          path: last.path,
          time: timeText(this.completedAtMs + this.clockAheadMs),
          bytes: 1,
          durationMs: 1,
          kind: last.kind,
        },
        completedInStart: restorePointOf(head).madeBy === head.start,
        consecutiveFailures: 0,
        lastFailure: undefined,
        snapshots: { newest: head.nextId - 1, isPending: false, lastFailed: this.lastFailed },
        progress: [...this.restoredBytes(), isRunning ? 1 : 0],
        ...services,
        requests: Object.fromEntries([
          ...[...this.askedCheckpoints].map((name) => [name, { state: 'pending' }] as const),
          ...Object.entries(head.results).map(
            ([name, { state, path, id, detail }]) =>
              [
                name,
                {
                  state,
                  ...(path !== undefined && { path }),
                  ...(state === 'completed' && id !== undefined && { id }),
                  ...(state === 'failed' && { detail: detail ?? '' }),
                },
              ] as const,
          ),
        ]),
      },
    }
  }

  readyWorkers(): Pod[] {
    return this.pods.filter(({ fact }) => fact.component === 'worker' && fact.ready && fact.deletingSince === undefined)
  }

  runs(): boolean {
    const { head } = this
    return head !== undefined && head.end === 'none' && this.slots() >= this.slotsNeeded(head)
  }

  slotsNeeded({ rescaledTo, parallelism }: Head): number {
    return (rescaledTo ?? parallelism) * this.slotsPerSize
  }

  // ---- the world turns ----

  pass(ms: number): void {
    this.nowMs += ms
    this.controllers()
    for (const pod of this.pods) this.turnPod(pod)
    this.turnJob()
  }

  controllers(): void {
    const deployment = this.children.get(coordinatorKey)
    const coordinators = this.pods.filter(({ fact }) => fact.component === 'coordinator')
    // Recreate: a pod of another template goes first.
    const isOurs = deployment?.ownedByJob === true
    const wrong = coordinators.filter(
      (pod) => !isOurs || pod.configStart !== deployment.start || pod.fact.revision !== deployment.revision,
    )
    this.pods = this.pods.filter((pod) => !wrong.includes(pod))
    if (isOurs && coordinators.length === wrong.length && !this.coordinatorPodsAreRefused)
      this.makePod('coordinator', {
        component: 'coordinator',
        revision: deployment.revision!,
        start: deployment.start!,
        begin: this.beginOf(deployment.start!),
      })
    const set = this.children.get(workerKey)
    const wanted = set?.ownedByJob === true ? set.replicas! : 0
    const workers = this.pods.filter(({ fact }) => fact.component === 'worker')
    this.pods = this.pods.filter(
      ({ fact }) =>
        fact.component !== 'worker' ||
        (Number(fact.name.slice(7)) < wanted && fact.deletingSince === undefined) ||
        fact.nodeLost,
    )
    for (let index = 0; index < wanted; index++)
      if (!workers.some(({ fact }) => fact.name === `worker-${index}`))
        this.makePod(`worker-${index}`, {
          component: 'worker',
          revision: set!.revision!,
          start: set!.start!,
          begin: { parallelism: 1 },
        })
  }

  beginOf(start: number): StartBegin {
    return this.children.get(`ConfigMap/config-${start}`)?.begin ?? { parallelism: 1 }
  }

  makePod(
    name: string,
    pod: Pick<PodFact, 'component' | 'revision'> & {
      purpose?: PodPurpose
      request?: string
      start: number
      begin: StartBegin
      arguments?: readonly string[]
    },
  ): void {
    this.version++
    const fact: PodFact = {
      kind: 'Pod',
      namespace: 'default',
      name,
      uid: `pod-${this.version}`,
      resourceVersion: String(this.version),
      component: pod.component,
      revision: pod.revision,
      purpose: pod.purpose,
      request: pod.request,
      createdAt: timeText(this.nowMs),
      node: 'node-1',
      nodeLost: false,
      nodeSilent: false,
      phase: 'Pending',
      ready: false,
      deletingSince: undefined,
      graceSeconds: 30,
      trouble: undefined,
      exitCode: undefined,
      output: undefined,
    }
    this.pods.push({
      fact,
      configStart: pod.start,
      begin: pod.begin,
      hasBegun: false,
      looks: 0,
      arguments: pod.arguments ?? [],
    })
  }

  turnPod(pod: Pod): void {
    pod.looks++
    const revision = this.revisionOf(pod)
    const set = (more: Partial<PodFact>): void => void (pod.fact = { ...pod.fact, ...more })
    if (pod.fact.phase === 'Succeeded' || pod.fact.phase === 'Failed') return
    if (revision?.image.includes('bad') === true)
      return set({ trouble: { reason: 'ImagePullBackOff', message: 'no such image' } })
    const workers = this.pods.filter(({ fact }) => fact.component === 'worker' && fact.phase === 'Running').length
    if (pod.fact.component === 'worker' && pod.fact.phase === 'Pending' && workers >= this.room)
      return set({ node: undefined, trouble: { reason: 'Unschedulable', message: 'no node has room' } })
    if (pod.fact.component === 'coordinator' && pod.fact.phase === 'Pending' && this.coordinatorHasNoNode)
      return set({ node: undefined, trouble: { reason: 'Unschedulable', message: 'no node has room' } })
    if (pod.fact.purpose !== undefined) {
      if (this.shortPodsHaveNoNode)
        return set({ node: undefined, trouble: { reason: 'Unschedulable', message: 'no node has room' } })
      set({ node: 'node-1', trouble: undefined })
      if (pod.looks < 2) return
      const output = this.outputOf(pod)
      return set(
        output === undefined
          ? { phase: 'Failed', exitCode: 4 }
          : { phase: 'Succeeded', exitCode: 0, output: `log\n${output}` },
      )
    }
    set({ phase: 'Running', ready: pod.fact.phase === 'Running', trouble: undefined, node: 'node-1' })
  }

  outputOf({ fact, arguments: words }: Pod): string | undefined {
    if (this.storageIsDown) return undefined
    const { head } = this
    switch (fact.purpose) {
      case 'preflight':
        return JSON.stringify({
          answer: this.preflightSays,
          reasons: this.preflightSays === 'yes' ? [] : [{ code: 'MR-O19', message: 'uid a has no place.' }],
        })
      case 'admin-close': {
        if (head === undefined) return JSON.stringify({ outcome: 'none', job: null })
        if (words.includes('--deleted')) head.end = 'cancelled'
        else if (head.end === 'none') head.end = 'suspended'
        return this.report('done', head)
      }
      case 'admin-commit':
        if (head === undefined) return JSON.stringify({ outcome: 'none', job: null })
        if (this.sinkIsAway)
          return JSON.stringify({ outcome: 'unclear', job: null, error: { code: 'MR-J60', message: awayText } })
        head.unconfirmed = false
        return this.report('done', head)
      case 'admin-restore-point':
        return head === undefined ? JSON.stringify({ outcome: 'none', job: null }) : this.report('found', head)
      default:
        return head && this.report('done', head)
    }
  }

  report(outcome: string, head: Head): string {
    const manifest = manifestOf(head)
    return JSON.stringify({
      outcome,
      job: {
        start: head.start,
        parallelism: head.rescaledTo ?? head.parallelism,
        restorePoint: manifest === undefined ? { kind: 'empty' } : { kind: 'manifest', manifest },
        end: { kind: head.end },
        unconfirmed: head.unconfirmed ? manifest : null,
      },
    })
  }

  turnJob(): void {
    const pod = this.coordinatorProcess()
    if (pod === undefined || this.storageIsDown) return
    const revision = this.revisionOf(pod)
    const crashes = revision?.spec.program.args['crash'] === true
    if (!pod.hasBegun) {
      if (this.natsIsDown) return
      this.builtFor = undefined
      return this.begin(pod)
    }
    const head = this.head!
    if (head.end === 'none' && this.builtFor !== head.rescaledTo) return void (this.builtFor = head.rescaledTo)
    for (const [name, result] of Object.entries(head.results)) {
      if (result.state !== 'pending') continue
      if (result.detail === 'close' || result.detail === 'cancel') {
        if (head.end === 'none') head.end = result.detail === 'close' ? 'suspended' : 'cancelled'
        head.results[name] = { state: 'completed' }
      } else if (head.end !== 'none') head.results[name] = { state: 'ended' }
    }
    if (head.end !== 'none') return this.commit()
    if (this.jobFails && this.runs()) return void (head.end = 'failed')
    if (!this.runs() || crashes) return
    if (this.endOfInput) {
      this.complete('checkpoint')
      head.unconfirmed = false
      head.end = 'finished'
      return
    }
    const waiting = Object.entries(head.results).find(([, { state }]) => state === 'pending')
    if (waiting !== undefined) return this.answer(...waiting)
    if (this.isCheckpointDue) return this.takeCheckpoint()
    if (!this.checkpointsStop && this.checkpointing === 'on' && this.isNextDue(head)) this.complete('checkpoint')
    else this.commit()
  }

  /** The first of a start comes at once, whatever the interval. */
  isNextDue({ completed, start }: Head): boolean {
    const isFirst = completed.at(-1)?.start !== start
    return isFirst || this.nowMs - this.completedAtMs >= this.checkpointEveryMs
  }

  commit(): void {
    if (!this.commitsAreStuck && !this.sinkIsAway) this.head!.unconfirmed = false
  }

  revisionOf({ fact }: Pod): Revision | undefined {
    return [...this.revisions, ...this.lostRevisions].find(({ name }) => name === fact.revision)
  }

  /** What ready workers offer. */
  slots(): number {
    return this.readyWorkers()
      .filter(({ looks }) => looks > registeredAfterLooks)
      .map((pod) => this.revisionOf(pod)?.spec.worker.slots ?? 0)
      .reduce((sum, slots) => sum + slots, 0)
  }

  answer(name: string, { detail, id }: CoordinatorFact['requests'][string]): void {
    const head = this.head!
    if (detail === 'rescale') {
      const needed = id! * this.slotsPerSize
      if (this.slots() < needed)
        return void (head.results[name] = { state: 'failed', detail: `it needs ${needed} slots` })
      const manifest = this.complete('checkpoint')
      head.rescaledTo = id!
      head.results[name] = { state: 'completed', id: manifest.id, path: manifest.path }
      return
    }
    if (this.savepointsHang) return
    if (this.savepointsFail) return void (head.results[name] = { state: 'failed', detail: 'a subtask declined' })
    const manifest = this.complete('savepoint')
    this.deeds.push({ deed: 'savepoint', request: name, stops: detail === 'stop' })
    head.results[name] = { state: 'completed', id: manifest.id, path: manifest.path }
    if (detail !== 'stop') return
    head.end = 'stopped'
    head.unconfirmed = true
    head.stoppedWith = manifest
  }

  takeCheckpoint(): void {
    this.isCheckpointDue = false
    if (this.checkpointsFail) this.lastFailed = { id: this.head!.nextId++, detail: 'a subtask declined' }
    else this.complete('checkpoint')
  }

  complete(kind: Manifest['kind']): Manifest {
    const head = this.head!
    const id = head.nextId++
    const manifest: Manifest = {
      id,
      kind,
      start: head.start,
      path: `s3://bucket/${kind === 'checkpoint' ? 'chk' : 'savepoint'}-${id}`,
    }
    if (kind === 'savepoint') this.savepointsWritten.add(manifest.path)
    if (kind === 'checkpoint') {
      this.completedAtMs = this.nowMs
      head.completed.push(manifest)
      head.unconfirmed = true
    }
    return manifest
  }

  /** protocol.md 2. */
  begin(pod: Pod): void {
    const { head } = this
    if (head === undefined && pod.begin.goesOn === true) return
    pod.hasBegun = true
    // Another process, which was asked for nothing yet.
    this.askedNames.clear()
    this.askedCheckpoints.clear()
    this.isCheckpointDue = false
    const { configStart: start, begin } = pod
    if (head !== undefined && start <= head.start) return
    const from =
      begin.empty === true
        ? undefined
        : begin.from !== undefined
          ? manifestAt(begin.from, head)
          : head && manifestOf(head)
    this.deeds.push({
      deed: 'began',
      start,
      from: from?.path ?? 'empty',
      begin,
      headBefore: head && structuredClone(head),
      revision: pod.fact.revision,
    })
    this.head = {
      start,
      end: 'none',
      restoredFrom: from,
      completed: head?.completed ?? [],
      stoppedWith: undefined,
      unconfirmed: begin.empty === true ? false : (head?.unconfirmed ?? false),
      parallelism: begin.parallelism,
      rescaledTo: undefined,
      nextId: head?.nextId ?? 1,
      results: Object.fromEntries(
        Object.entries(head?.results ?? {}).map(([name, result]) => [
          name,
          result.state === 'pending' ? { state: 'failed', detail: 'another start began' } : result,
        ]),
      ),
    }
  }
}
