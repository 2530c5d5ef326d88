// From a key to what is done about it: observe, decide, then write status, or act, or wait; and look again. One key at a time, on the leader
// alone.

import type { Clock, Random } from '../runtime/base/environment.ts'
import { MillraceError } from '../runtime/base/errors.ts'
import { act, actOnSavepoint } from './act.ts'
import type { ActContext } from './act.ts'
import { codeMapOf, workKey } from './caches.ts'
import type { WorkKey } from './caches.ts'
import type { Action, Decision, Observed } from './contract.ts'
import type { ObservedSavepoint, SavepointDecision } from './savepoint-contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import type { OperatorMetrics } from './metrics.ts'
import type { Observer, SeenJob } from './observe.ts'
import { statusOf } from './observe.ts'
import { WorkQueue } from './queue.ts'
import { failureOf, refusalOf, sameWord } from './refusals.ts'
import type { Failed } from './refusals.ts'
import { asSentence } from './status-text.ts'

export interface ControllerOptions {
  readonly context: ActContext
  readonly observer: Observer
  readonly decide: (observed: Observed) => Decision
  readonly decideSavepoint: (observed: ObservedSavepoint) => SavepointDecision
  readonly clock: Clock
  readonly random: Random
  readonly metrics: OperatorMetrics
  readonly log: ActContext['log']
  /** What is remembered of a job or Savepoint elsewhere goes with it. */
  readonly forget: (uid: string) => void
  /** What is remembered of pods and ConfigMaps is gone through. */
  readonly tidy: (kept: { readonly maps: ReadonlySet<string>; readonly pods: ReadonlySet<string> }) => void
}

/** Keys at one time; most of a look is waiting for somebody's answer. */
const workers = 16
/** Whatever the caches say, each object is looked at so often. */
const resyncMs = 10 * 60_000
/** The same act again waits longer each time. */
const againMs = { min: 100, max: 30_000 } as const
const deletedAgainMs = 3_000
/** What must not wait, and is refused: so long it is left, and everything else goes on. */
const refusedAgainMs = 10_000
/** After an act without a change of status the right to act is proved anew. */
const provedMs = 5_000
/** More writes of one status in this time are a mistake of ours: it goes on slowly. */
const calm = { withinMs: 10_000, writesMax: 30, pauseMs: 5_000 } as const

interface Memory {
  uid: string
  /** What was done last, and how often in a row. */
  did: string
  times: number
  /** The version that this process wrote or proved, and when. */
  proved: { readonly version: string; readonly atMs: number } | undefined
  /** Of status, lately. */
  writesMs: number[]
  /** Why the last act is refused; undefined: it is not, or there is nothing more to be done. */
  refused: string | undefined
  /** Pods that it refused to take away by force, by uid: why, and when that is tried again. */
  readonly refusedPods: Map<string, { readonly why: string; readonly againAtMs: number }>
  /** What failed last without being refused, and how often in a row. */
  failed: { readonly did: string; readonly times: number } | undefined
}

export class Controller {
  readonly #options: ControllerOptions
  readonly #memory = new Map<WorkKey, Memory>()
  #queue: WorkQueue | undefined
  #resync: { cancel(): void } | undefined

  constructor(options: ControllerOptions) {
    this.#options = options
  }

  get queueLength(): number {
    return this.#queue?.length ?? 0
  }

  /** This process leads. */
  start(): void {
    const { clock, random } = this.#options
    this.stop()
    this.#queue = new WorkQueue({
      clock,
      random,
      workers,
      work: (key) => this.#work(key),
      onError: (key, error, inMs) => this.#failed(key, error, inMs),
    })
    this.#all()
  }

  /** At once: what runs finds at its next write that it does not lead. */
  stop(): void {
    this.#queue?.close()
    this.#queue = undefined
    this.#resync?.cancel()
    this.#memory.clear()
  }

  wanted(key: WorkKey): void {
    this.#queue?.add(key)
  }

  #all(): void {
    const { clock, context, tidy } = this.#options
    const { caches } = context
    const jobs = caches.all(types.streamJob)
    for (const { kind, metadata } of [...jobs, ...caches.all(types.savepoint)])
      this.wanted(workKey(kind as 'StreamJob' | 'Savepoint', metadata.namespace, metadata.name))
    const maps = jobs.map((job) => `${job.metadata.namespace}/${codeMapOf(job) ?? ''}`)
    tidy({ maps: new Set(maps), pods: new Set(caches.all(types.pod).map(({ metadata }) => metadata.uid!)) })
    this.#resync = clock.timer(resyncMs, () => this.#all())
  }

  async #work(key: WorkKey): Promise<number | undefined> {
    const { clock, metrics } = this.#options
    const begunMs = clock.nowMs()
    const [kind, namespace, name] = key.split('/') as [string, string, string]
    try {
      const inMs =
        kind === 'StreamJob' ? await this.#job(key, namespace, name) : await this.#savepoint(key, namespace, name)
      metrics.reconciled(kind, 'ok', clock.nowMs() - begunMs)
      return inMs
    } catch (error) {
      metrics.reconciled(kind, 'error', clock.nowMs() - begunMs)
      // Somebody was faster, and the caches show it: that is no failure of this object.
      if (error instanceof KubeError && (error.conflict || error.notFound)) return this.#again(key, 'overtaken')
      if (!this.#isDeleted(kind, namespace, name)) throw error
      // Its deadline is not to wait for a back-off.
      const inMs = Math.min(Math.max(againMs.min, this.#again(key, 'failed')), deletedAgainMs)
      this.#failed(key, error, inMs)
      return inMs
    }
  }

  #isDeleted(kind: string, namespace: string, name: string): boolean {
    const type = kind === 'StreamJob' ? types.streamJob : types.savepoint
    const object = this.#options.context.caches.get(type, namespace, name)
    return object?.metadata.deletionTimestamp !== undefined
  }

  #failed(key: WorkKey, error: unknown, inMs: number): void {
    const { metrics, log } = this.#options
    const kind = kindOfError(error)
    metrics.failed(kind)
    const fields = { key, error: error instanceof Error ? error.message : String(error), inMs: Math.round(inMs) }
    log(kind === 'not leading' ? 'debug' : 'warn', 'a look failed and is repeated', fields)
  }

  async #job(key: WorkKey, namespace: string, name: string): Promise<number | undefined> {
    const { observer, decide, context, log } = this.#options
    const seen = await observer.job(namespace, name)
    if (seen === undefined) return this.#gone(key)
    const memory = this.#of(key, seen.owner.uid)
    const refusedPods = this.#refusedPods(memory, seen.observed)
    const decision = decide({ ...seen.observed, refusedAct: memory.refused, refusedPods })
    log('debug', `job: ${decision.kind}: ${decision.why}`, { key })
    switch (decision.kind) {
      case 'record': {
        const written = await context.writer.status(seen.object, decision.status)
        this.#wroteStatus(memory, written)
        log('info', decision.why, { key, phase: decision.status.phase, step: decision.status.transition?.step })
        for (const event of decision.events) await context.events.tell(written, event)
        memory.did = ''
        return this.#isCalm(memory) ? 0 : calm.pauseMs
      }
      case 'act':
        return this.#act(key, memory, seen, decision)
      case 'wait':
        memory.did = ''
        memory.refused = undefined
        memory.failed = undefined
        return refusedPods.size === 0 ? decision.forMs : Math.min(decision.forMs ?? refusedAgainMs, refusedAgainMs)
      default:
        return decision satisfies never
    }
  }

  async #act(
    key: WorkKey,
    memory: Memory,
    seen: SeenJob,
    { actions, why: doing }: Extract<Decision, { kind: 'act' }>,
  ): Promise<number> {
    const { context, log } = this.#options
    const object = await this.#prove(memory, seen.object, actions)
    const did = JSON.stringify(actions.map(briefOf))
    log(memory.did === did ? 'debug' : 'info', doing, { key, actions: actions.map(({ type }) => type) })
    try {
      await act(context, { ...seen, object }, actions)
      memory.refused = undefined
      memory.failed = undefined
    } catch (error) {
      const pods = forcedPods(actions)
      const known = pods.map((uid) => memory.refusedPods.get(uid)?.why).find((each) => each !== undefined)
      const refusal = refusalOf(error)
      const isFailing =
        refusal === undefined && (known !== undefined || this.#isFailing(memory, did, { actions, error }))
      const refused = isFailing ? failureOf({ actions, error }) : refusal
      if (refused === undefined) throw error
      // The same word may have other ports and times each time.
      const why = sameWord(known ?? (isFailing ? memory.refused : undefined), refused)
      const againAtMs = this.#options.clock.nowMs() + refusedAgainMs
      for (const uid of pods) memory.refusedPods.set(uid, { why, againAtMs })
      if (pods.length === 0) memory.refused = why
      if (known !== why)
        await context.events.tell(seen.object, {
          type: 'event',
          kind: 'Warning',
          reason: 'ActionRefused',
          message: `What is to be done is refused (${doing}): ${asSentence(why)} It is tried again.`,
        })
      if (pods.length === 0) throw error
      this.#failed(key, error, refusedAgainMs)
      return 0
    }
    return this.#again(key, did)
  }

  /** At its second time in a row: what fails once may pass. */
  #isFailing(memory: Memory, did: string, attempt: Failed): boolean {
    if (failureOf(attempt) === undefined) return false
    const { failed } = memory
    memory.failed = { did, times: failed?.did === did ? failed.times + 1 : 1 }
    return memory.failed.times >= 2
  }

  /** O17: an act follows a status write under the very version that was observed; a process that was overtaken does not come so far. */
  async #prove(memory: Memory, object: KubeObject, actions: readonly Action[]): Promise<KubeObject> {
    const { context, clock } = this.#options
    // At the end of a deletion the right to write may be gone too; the finalizer's patch has the version.
    if (actions.some(({ type }) => type === 'removeFinalizer' || type === 'addFinalizer')) return object
    const status = statusOf(object)
    const { proved } = memory
    const isProved =
      proved !== undefined &&
      proved.version === object.metadata.resourceVersion &&
      clock.nowMs() - proved.atMs < provedMs
    if (isProved || status === undefined) return object
    const written = await context.writer.status(object, status)
    memory.proved = { version: written.metadata.resourceVersion!, atMs: clock.nowMs() }
    return written
  }

  async #savepoint(key: WorkKey, namespace: string, name: string): Promise<number | undefined> {
    const { observer, decideSavepoint, context, log } = this.#options
    const seen = await observer.savepoint(namespace, name)
    if (seen === undefined) return this.#gone(key)
    const memory = this.#of(key, seen.observed.savepoint.uid)
    const decision = decideSavepoint(seen.observed)
    log('debug', `savepoint: ${decision.kind}: ${decision.why}`, { key })
    if (decision.kind === 'wait') {
      memory.did = ''
      return decision.forMs
    }
    log('info', decision.why, { key, actions: decision.actions.map(({ type }) => type) })
    await actOnSavepoint(context, seen, decision.actions)
    return this.#again(key, JSON.stringify(decision.actions.map(({ type }) => type)))
  }

  /** At once if something else was done than last time; else later each time. */
  #again(key: WorkKey, did: string): number {
    const memory = this.#memory.get(key)
    if (memory === undefined) return againMs.min
    memory.times = memory.did === did ? memory.times + 1 : 0
    memory.did = did
    return memory.times === 0 ? 0 : Math.min(againMs.max, againMs.min * 2 ** (memory.times - 1))
  }

  #of(key: WorkKey, uid: string): Memory {
    const known = this.#memory.get(key)
    if (known?.uid === uid) return known
    if (known !== undefined) this.#options.forget(known.uid)
    const memory: Memory = {
      uid,
      did: '',
      times: 0,
      proved: undefined,
      writesMs: [],
      refused: undefined,
      refusedPods: new Map(),
      failed: undefined,
    }
    this.#memory.set(key, memory)
    return memory
  }

  /** Those that are not tried again yet. */
  #refusedPods({ refusedPods }: Memory, { pods }: Observed): ReadonlyMap<string, string> {
    const nowMs = this.#options.clock.nowMs()
    const there = new Set(pods.map(({ uid }) => uid))
    for (const uid of refusedPods.keys()) if (!there.has(uid)) refusedPods.delete(uid)
    return new Map(
      [...refusedPods].filter(([, { againAtMs }]) => nowMs < againAtMs).map(([uid, { why }]) => [uid, why]),
    )
  }

  #gone(key: WorkKey): undefined {
    const known = this.#memory.get(key)
    if (known !== undefined) this.#options.forget(known.uid)
    this.#memory.delete(key)
  }

  #wroteStatus(memory: Memory, written: KubeObject): void {
    const nowMs = this.#options.clock.nowMs()
    memory.proved = { version: written.metadata.resourceVersion!, atMs: nowMs }
    memory.writesMs = [...memory.writesMs.filter((atMs) => nowMs - atMs < calm.withinMs), nowMs]
  }

  #isCalm({ writesMs, uid }: Memory): boolean {
    if (writesMs.length <= calm.writesMax) return true
    this.#options.log('warn', 'one status is written too often', { uid, writes: writesMs.length })
    return false
  }
}

/** Of an act that everything else would wait for. */
function forcedPods(actions: readonly Action[]): readonly string[] {
  const isUrgent = actions.every(({ type }) => type === 'delete' || type === 'request')
  return actions.flatMap((action) => (isUrgent && action.type === 'delete' && action.force ? [action.of.uid] : []))
}

/** What tells one act from another; never a secret, nor code. */
function briefOf(action: Action): unknown {
  switch (action.type) {
    case 'storeRevision':
      return [action.type, action.revision.name]
    case 'request':
      return [action.type, action.request]
    case 'delete':
    case 'scaleWorkers':
      return [action.type, action.of.uid]
    case 'runPod':
      return [action.type, action.pod, action.request]
    default:
      return action.type
  }
}

export type ErrorKind = 'not leading' | 'api' | 'millrace' | 'other'

function kindOfError(error: unknown): ErrorKind {
  if (error instanceof KubeError) return 'api'
  if (error instanceof MillraceError) return error.code === 'MR-P04' ? 'not leading' : 'millrace'
  return 'other'
}
