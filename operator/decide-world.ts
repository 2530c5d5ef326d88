// A small world for tests of decide: what a user and an operator do to it. What goes on in it by itself is in decide-world-cluster.ts.

import { invariant } from '../runtime/base/errors.ts'
import type { Action, ChildFact, Decision, EffectiveSpec, Observed, Revision } from './contract.ts'
import type { SavepointFact } from './savepoint-contract.ts'
import { START_IN_RENDERING } from './contract.ts'
import { decide } from './decide.ts'
import { Cluster, childKeys, uid, workerKey } from './decide-world-cluster.ts'
import type { Spec } from './decide-world-cluster.ts'
import { restorePointOf } from './decide-world-head.ts'
import { codeHash } from './revision.ts'
import { timeText } from './status-time.ts'
import { validate } from './validate.ts'
import type { StateTraces } from './validate.ts'

export { restorePointOf } from './decide-world-head.ts'
export { awayText } from './decide-world-cluster.ts'
export type { Deed, Spec } from './decide-world-cluster.ts'

export class OperatorKilled extends Error {}

export class World extends Cluster {
  constructor(spec: Spec = {}) {
    super()
    this.wasAskedForStateless = spec['upgradeMode'] === 'stateless'
    this.job = { generation: 1, spec: fullSpec(spec), finalizers: [], deletingSince: undefined, version: 1 }
  }

  // ---- the user ----

  edit(spec: Spec): void {
    if (spec['upgradeMode'] === 'stateless') this.wasAskedForStateless = true
    const job = this.job!
    this.job = { ...job, generation: job.generation + 1, spec: { ...job.spec, ...spec }, version: ++this.version }
  }

  editCode(text: string): void {
    this.code = { kind: 'files', configMap: 'code', hash: codeHash({ 'job.ts': text }), keys: ['job.ts'] }
  }

  delete(): void {
    const job = this.job!
    if (job.finalizers.length === 0) return this.removeJob()
    this.job = { ...job, generation: job.generation + 1, deletingSince: timeText(this.nowMs), version: ++this.version }
  }

  addSavepoint(name: string, more: Partial<SavepointFact> = {}): void {
    this.savepoints.push({
      kind: 'Savepoint',
      namespace: 'default',
      name,
      uid: `uid-${name}`,
      resourceVersion: String(++this.version),
      path: undefined,
      disposal: 'retain',
      deleting: false,
      deletingSince: undefined,
      finalizers: [],
      madeBy: 'user',
      createdAt: timeText(this.nowMs),
      status: undefined,
      ...more,
    })
  }

  addForeign(key: string): void {
    this.children.set(key, {
      ...this.child(key, undefined, undefined),
      ownedByJob: false,
      asRendered: false,
      uid: 'foreign',
    })
  }

  // ---- the operator ----

  observe(): Observed {
    const job = this.job!
    const running = this.revisionNamed(this.status?.revision)?.spec
    return {
      nowMs: this.nowMs,
      job: {
        kind: 'StreamJob',
        namespace: 'default',
        name: 'flights',
        uid,
        resourceVersion: String(job.version),
        generation: job.generation,
        deletingSince: job.deletingSince,
        finalizers: job.finalizers,
      },
      namespaceTerminating: this.namespaceTerminating,
      spec: this.validated(running),
      code: { known: true, value: this.code },
      status: this.status,
      revisions: this.revisionsAreUnread ? [] : this.revisions,
      unseen: this.unseen(),
      children: Object.fromEntries(this.children),
      pods: this.pods.map(({ fact }) => fact),
      lostWorkers: this.lostWorkers,
      coordinator: this.coordinatorFact(),
      refusedAct: undefined,
      refusedPods: this.refusedPods,
      savepoints: this.savepoints,
      operatorVersion: this.operatorVersion,
    }
  }

  unseen(): Observed['unseen'] {
    return [...new Set([this.status?.revision, this.status?.stableRevision])]
      .filter((name) => name !== undefined && this.revisionNamed(name) === undefined)
      .map((name) => ({ name: name!, ...(this.revisionsAreUnread && { unread: 'no answer' }) }))
  }

  /** That the operator sees. */
  revisionNamed(name: string | undefined): Revision | undefined {
    return this.revisionsAreUnread ? undefined : this.revisions.find((revision) => revision.name === name)
  }

  loseRevision(name: string | undefined): void {
    this.lostRevisions.push(...this.revisions.filter((revision) => revision.name === name))
    this.revisions = this.revisions.filter((revision) => revision.name !== name)
    this.version++
  }

  /** Remembered: most moments change no spec. */
  validated(running: EffectiveSpec | undefined): Observed['spec'] {
    const begun = this.status !== undefined && this.status.start > 0
    const traces = begun && running === undefined ? this.traces : undefined
    const key = `${this.job!.generation}/${this.status?.revision}/${traces?.checkpoints}`
    if (this.lastValidated?.key !== key)
      this.lastValidated = { key, read: validate({ document: this.document(), defaults: chart, running, traces }) }
    return this.lastValidated.read
  }
  /** What is left of where the state is, without the revision. */
  traces: StateTraces = { checkpoints: chart.storage.checkpoints, maxParallelism: undefined }
  lastValidated: { readonly key: string; readonly read: Observed['spec'] } | undefined

  document() {
    return {
      apiVersion: 'millrace.dev/v1alpha1',
      kind: 'StreamJob',
      metadata: { name: 'flights' },
      spec: this.job!.spec,
    }
  }

  spec(): EffectiveSpec {
    const read = this.observe().spec
    invariant(read.fits, 'the spec is not valid')
    return read.spec
  }

  decide(): Decision {
    return decide(this.observe())
  }

  /** One decision, carried out. Gives what it was. */
  reconcile(): Decision {
    const decision = this.decide()
    if (decision.kind === 'record') {
      this.status = decision.status
      this.job!.version = ++this.version
      this.deeds.push({ deed: 'record', why: decision.why })
      this.wrote()
      for (const { reason, message } of decision.events) this.deeds.push({ deed: 'event', reason, message })
    } else if (decision.kind === 'act')
      for (const action of decision.actions) {
        this.act(action)
        if (this.job === undefined) break
        if (action.type !== 'event') this.wrote()
      }
    return decision
  }

  /** Reconciles until it waits; then a moment passes. Until `done`, or an error after so many moments. */
  run(done: () => boolean, moments = 600): this {
    for (let moment = 0; moment < moments; moment++) {
      this.settle()
      if (this.job === undefined || done()) return this
      this.pass(1_000)
    }
    throw new Error(
      `not reached in ${moments} moments: ${JSON.stringify({ status: this.status, head: this.head, why: this.decide().why, pods: this.pods.map(({ fact }) => [fact.name, fact.phase, fact.deletingSince]) }, undefined, 1)}`,
    )
  }

  /** What the operator does at one moment. */
  settle(): void {
    for (let round = 0; round < 60; round++) {
      if (this.job === undefined) return
      const before = this.fingerprint()
      const decision = this.reconcile()
      if (decision.kind === 'wait') return
      // The same act again would change nothing: the operator pauses.
      if (decision.kind === 'act' && this.fingerprint() === before) return
    }
    throw new Error(`no end of decisions: ${this.decide().why}`)
  }

  fingerprint(): string {
    return `${this.version}/${this.deeds.length}`
  }

  wrote(): void {
    this.writes++
    if (this.writes === this.killAfter) throw new OperatorKilled()
  }

  act(action: Action): void {
    switch (action.type) {
      case 'addFinalizer':
        this.job = { ...this.job!, finalizers: ['millrace.dev/operator'], version: ++this.version }
        return
      case 'removeFinalizer':
        return this.removeJob()
      case 'storeRevision': {
        if (this.revisions.some(({ name }) => name === action.revision.name)) return
        this.version++
        const rendering = Object.fromEntries(childKeys.map((key) => [key, this.builder]))
        this.revisions.push({ ...action.revision, rendering, natsSharing: 'own' })
        return
      }
      case 'deleteRevision':
        this.revisions = this.revisions.filter(({ name }) => name !== action.revision)
        this.version++
        return
      case 'applyChildren':
        return this.apply(action)
      case 'scaleWorkers': {
        const child = this.children.get(workerKey)!
        if (action.to === 0) this.deeds.push({ deed: 'took down', what: 'workers', to: 0 })
        this.children.set(workerKey, { ...child, replicas: action.to })
        this.version++
        return
      }
      case 'delete':
        return this.remove(action)
      case 'request':
        return this.request(action.request)
      case 'runPod':
        if (this.podsCannotBeMade || this.namespaceTerminating) return
        if (this.pods.some(({ fact }) => fact.purpose === action.pod && fact.request === action.request)) return
        this.version++
        this.makePod(`${action.pod}-${action.request}`, {
          component: action.pod === 'preflight' ? 'preflight' : 'admin',
          purpose: action.pod,
          request: action.request,
          revision: action.revision,
          start: action.start,
          begin: action.begin,
          arguments: action.arguments,
        })
        return
      case 'createSavepoint':
        if (this.savepointObjectsCannotBeMade) return
        if (this.savepoints.some(({ name }) => name === action.name)) return
        return this.addSavepoint(action.name, { madeBy: 'operator', disposal: 'delete', path: action.path })
      case 'recordSavepoint': {
        const { state, path, detail } = action
        this.savepoints = this.savepoints.map((savepoint) =>
          savepoint.uid === action.of.uid
            ? {
                ...savepoint,
                status: { state, ...(path !== undefined && { path }), ...(detail !== undefined && { detail }) },
              }
            : savepoint,
        )
        this.version++
        return
      }
      case 'event':
        this.deeds.push({ deed: 'event', reason: action.reason, message: action.message })
        return
      default:
        action satisfies never
    }
  }

  apply({ revision, start, workers, begin }: Extract<Action, { type: 'applyChildren' }>): void {
    invariant(
      this.revisions.some(({ name }) => name === revision),
      `revision ${revision} is applied and not stored`,
    )
    for (const key of childKeys.map((name) => name.replace(START_IN_RENDERING, String(start)))) {
      const there = this.children.get(key)
      if (there?.ownedByJob === false) continue
      const isImmutable = key.startsWith('ConfigMap/') && there !== undefined
      if (isImmutable) continue
      const rendered = { ...this.child(key, revision, start), begin }
      this.children.set(key, key === workerKey ? { ...rendered, replicas: workers } : rendered)
    }
    this.version++
  }

  child(key: string, revision: string | undefined, start: number | undefined): ChildFact {
    const [kind, name] = key.split('/') as [string, string]
    return {
      kind,
      namespace: 'default',
      name,
      uid: `${uid}-${key}`,
      resourceVersion: String(++this.version),
      revision,
      start,
      replicas: kind === 'Deployment' ? 1 : undefined,
      podsRefused: undefined,
      podsMissing: 0,
      asRendered: true,
      ownedByJob: true,
      deleting: false,
    }
  }

  remove({ of, force }: Extract<Action, { type: 'delete' }>): void {
    this.version++
    const key = `${of.kind}/${of.name}`
    if (this.children.get(key)?.ownedByJob === false) this.deeds.push({ deed: 'touched foreign', what: key })
    if (of.kind === 'StreamJob') return this.delete()
    if (of.kind === 'Savepoint') {
      const savepoint = this.savepoints.find(({ uid: other }) => other === of.uid)
      if (savepoint === undefined) return
      const restorePoint = this.head && restorePointOf(this.head).path
      this.deeds.push({ deed: 'deleted savepoint', savepoint, restorePoint })
      this.savepoints = this.savepoints.filter((other) => other !== savepoint)
      return
    }
    if (of.kind === 'Pod') {
      this.pods = this.pods.flatMap((pod) => {
        if (pod.fact.uid !== of.uid) return [pod]
        if (force || pod.fact.purpose !== undefined) return []
        return [{ ...pod, fact: { ...pod.fact, deletingSince: timeText(this.nowMs) } }]
      })
      return
    }
    if (of.kind === 'Deployment' || of.kind === 'StatefulSet')
      this.deeds.push({ deed: 'took down', what: of.kind, to: 0 })
    this.children.delete(key)
  }

  removeJob(): void {
    this.job = undefined
    this.children.clear()
    this.pods = []
    this.revisions = []
  }
}

const chart = {
  image: 'millrace:1',
  storage: { checkpoints: 's3://chart/jobs', s3: { credentialsSecret: 's3' } },
  nats: { url: 'nats://nats:4222', tls: false },
}

function fullSpec(spec: Spec): Spec {
  return { program: { module: { configMap: { name: 'code', key: 'job.ts' } } }, ...spec }
}
