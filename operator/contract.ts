// What the parts of the operator tell each other. One reconcile of one StreamJob:
//
//   observe ─▶ validate ─▶ decide (pure) ─▶ record: write status, and look again
//                              │         ─▶ act: idempotent actions that the status as written permits, and look again
//                              ╰────────── ─▶ wait: until something changes, or so long
//
// "Write down before acting" (kubernetes.md rule 2) is the shape of it: a decision either writes the status or acts on the status that is
// written, never both. A killed operator finds its place again from status and objects alone, whichever write it was killed after.

import type { StreamJob } from '../crds/stream-job.ts'
import type { SavepointFact, SavepointOrigin } from './savepoint-contract.ts'
import type { Measures } from './progress.ts'

/** Version of what status and revisions hold; an operator keeps its hands off a newer one. */
export const STATUS_VERSION = 1

/** Ours, on StreamJobs: closing HEAD is work that garbage collection cannot do. On Savepoints: taking the files away is. */
export const FINALIZER = 'millrace.dev/operator'
/** The garbage collector's: it takes away all that the object owns, at once, whatever other finalizers there are. */
export const FOREGROUND_FINALIZER = 'foregroundDeletion'

/** In keys and texts of a rendering it stands for the number of the start; no name of Kubernetes can hold it. */
export const START_IN_RENDERING = '{start}'

export type EffectiveSpec = StreamJob['spec']

/** Fields of the spec that are the operator's own business: no pod is another for them, so no revision is either. */
export const settingNames = [
  'state',
  'parallelism',
  'upgradeMode',
  'restoreFrom',
  'restoreNonce',
  'restoreMode',
  'allowNonRestoredState',
  'restartNonce',
  'savepointNonce',
  'checkpointNonce',
  'savepoints',
  'rollback',
  'deletion',
  'ttlAfterFinished',
] as const satisfies readonly (keyof EffectiveSpec)[]

export type Settings = Pick<EffectiveSpec, (typeof settingNames)[number]>

/** As it is on the server: what is needed for preconditions. */
export interface ObjectIdentity {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

// ---- status (written by the operator alone) ----

export type Phase =
  | 'PENDING'
  | 'STARTING'
  | 'RUNNING'
  | 'RESTARTING'
  | 'UPGRADING'
  | 'RESCALING'
  | 'SUSPENDING'
  | 'SUSPENDED'
  | 'FINISHED'
  | 'FAILED'
  | 'DELETING'

export type ConditionType =
  | 'Ready'
  | 'Progressing'
  | 'CheckpointHealthy'
  | 'Degraded'
  | 'UpgradeBlocked'
  | 'Reconciling'
  | 'Stalled'
  | 'Isolated'

export interface Condition {
  readonly type: ConditionType
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  /** First cause and remedy. Never a secret. */
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

/** As HEAD said it. */
export interface RecordedRestorePoint {
  readonly kind: 'empty' | 'checkpoint' | 'savepoint'
  readonly path?: string
  readonly id?: number
  /** HEAD's start when it was read. */
  readonly start: number
  /** Which start made it; the same as `start`: that start completed something. undefined: empty. */
  readonly madeBy?: number
  readonly unconfirmed: boolean
  readonly readAt: string
}

/** How a start begins; its process.json says the same. Neither: where HEAD says. */
export interface StartBegin {
  readonly parallelism: number
  /** A snapshot's folder. */
  readonly from?: string
  /** `from` is what spec.restoreFrom says; else it is where a rollback goes back to. */
  readonly asked?: boolean
  /** From nothing: a stateless start. */
  readonly empty?: boolean
  /** Where HEAD says, which was seen before: without it nothing begins. */
  readonly goesOn?: boolean
  /** As the spec had it then. */
  readonly allowNonRestoredState?: boolean
}

/** How HEAD is closed before anything is taken away (protocol.md 5). */
export type CloseMode =
  /** With a savepoint; needs the coordinator. */
  | 'savepoint'
  /** `suspended`: the next start begins at HEAD's restore point. */
  | 'last-state'
  /** `suspended`, and the next start begins from nothing. */
  | 'stateless'
  /** `cancelled`: the job is deleted. */
  | 'delete'

export type TransitionStep =
  /** Status was lost: HEAD's start is read, by the coordinator or an admin pod. */
  | 'recovering'
  /** Revision and code are stored; an upgrade is tried out by a preflight pod. */
  | 'preparing'
  /** HEAD is being closed, under `request`. */
  | 'closing'
  /** The restore point that HEAD showed then is in `restorePoint`; pods may go. */
  | 'closed'
  /** `start` is raised; children of the new revision are made. */
  | 'starting'
  /** They run; the first completed checkpoint makes the revision stable. */
  | 'stabilising'
  /** A rescale in place: workers first where it grows, the request, workers last where it shrinks. */
  | 'growing'
  | 'rescaling'
  | 'shrinking'

export interface Transition {
  readonly kind: 'start' | 'upgrade' | 'restart' | 'rescale' | 'suspend' | 'rollback' | 'delete'
  readonly step: TransitionStep
  /** Names what is asked of the coordinator: the same over operators. */
  readonly request: string
  readonly mode: CloseMode
  /**
   * `mode` is what spec.upgradeMode says, and follows it until HEAD is closed; false: it is what restoreNonce asks for. undefined, of what has
   * begun unasked and by an operator that did not write it: it follows in an upgrade and a suspension alone.
   */
  readonly modeOfSpec?: boolean
  /** How often the coordinator was asked and refused or failed; part of `request`. */
  readonly attempt: number
  /** RFC 3339: not before then is it asked again, and why it failed. While HEAD is closed: its commits. */
  readonly retry?: { readonly at: string; readonly why: string }
  /** The start begins at this snapshot. */
  readonly restoreFrom?: string
  /** Which asked for this start, and is answered when it begins: until then it asks again, whatever becomes of the transition. */
  readonly restoreNonce?: number
  /** Of a deletion: where HEAD was stopped with the savepoint that deletion.savepoint asks for. */
  readonly savepoint?: string
  /** undefined: none was running; none is to run. */
  readonly from?: string
  readonly to?: string
  /** Of a rescale. */
  readonly parallelism?: number
  /** RFC 3339: of the transition, of its step, and of the last progress that was seen. */
  readonly begunAt: string
  readonly stepAt: string
  readonly progressAt: string
  /** Since when S3, NATS or nodes are away: the clock of the progress deadline stands still. */
  readonly held?: { readonly since: string; readonly why: string }
  /** How far it has come at best: pods, bytes restored, subtasks, acknowledgements (progress.ts). */
  readonly progress: string
}

export interface AskedSnapshot {
  readonly kind: 'savepoint' | 'checkpoint'
  readonly request: string
  readonly at: string
  /** Whose it is: the nonce of the spec, or a Savepoint object's uid. */
  readonly nonce?: number
  readonly object?: string
  /** Of a checkpoint: the newest snapshot's id before the coordinator was asked; its own is greater. undefined: that was not read yet. */
  readonly after?: number
}

export interface StreamJobStatus {
  readonly version: typeof STATUS_VERSION
  readonly observedGeneration: number
  readonly jobId: string
  /** Follows from the rest and what is observed. */
  readonly phase: Phase
  readonly conditions: readonly Condition[]
  /** Of the job's life; 0 before the first. */
  readonly start: number
  /** Names of ControllerRevisions. */
  readonly revision?: string
  readonly stableRevision?: string
  /** How the current start began. */
  readonly begin?: StartBegin
  readonly restorePoint?: RecordedRestorePoint
  /** The restore point before the last upgrade: where a rollback of one that did not begin at HEAD's own point goes back to. */
  readonly rollbackPoint?: RecordedRestorePoint
  readonly rollbackParallelism?: number
  /** The last start that was rolled back, until a later one has begun: while HEAD is still its, the next start begins at rollbackPoint. */
  readonly rolledBackStart?: number
  readonly transition?: Transition
  /** A spec that is not tried again until what its `key` is made of changes (revision.ts). */
  readonly blocked?: { readonly key: string; readonly reason: string; readonly message: string }
  /** A parallelism that could not be had: it is not tried again until another is asked for. The job runs on. */
  readonly refusedSize?: { readonly parallelism: number; readonly message: string }
  /** Worker pods that the running start is to have. */
  readonly workers: number
  /** The one savepoint or checkpoint that is asked for now; written before it is. */
  readonly asked?: AskedSnapshot
  /** Savepoints that spec.savepoints made: number and time of the last. */
  readonly periodic?: { readonly number: number; readonly at: string }
  readonly lastCheckpoint?: {
    readonly id: number
    readonly path: string
    readonly time: string
    readonly bytes: number
    readonly durationMs: number
    readonly kind: 'checkpoint' | 'savepoint'
  }
  readonly savepoints: readonly {
    readonly path: string
    readonly id: number
    readonly time: string
    readonly request: string
  }[]
  readonly restarts: number
  /** Of the running job; of /scale. */
  readonly parallelism: number
  readonly labelSelector: string
  /** Nonces that are answered; one that was there at creation is. */
  readonly answered: {
    readonly restart?: number
    readonly restore?: number
    readonly savepoint?: number
    readonly checkpoint?: number
  }
  /** Steps of the last transition. */
  readonly timeline: readonly { readonly step: string; readonly seconds: number }[]
  /** Of the newest spec that was valid: they hold while the spec is not. A revision has those of when it was stored. */
  readonly settings?: Settings
  /** What has become of the start; undefined: it runs, or there was none. */
  readonly ended?: 'SUSPENDED' | 'FINISHED' | 'FAILED'
  /** Of FINISHED and FAILED; and why it failed. */
  readonly finishedAt?: string
  readonly failure?: string
}

// ---- revisions (ControllerRevision) ----

/** Everything that a start was made with, so that it can be made again without today's spec, code or builder. */
export interface Revision {
  readonly version: 1
  readonly name: string
  readonly number: number
  /** Defaults resolved, the chart's too. */
  readonly spec: EffectiveSpec
  readonly image: string
  /** Of the code's files; undefined: the code is in the image. */
  readonly code: { readonly hash: string; readonly configMap: string; readonly key: string } | undefined
  /** The version of the runtime in the image, if it is known; operators drive N and N-1. */
  readonly operatorVersion: string
  /**
   * Children as the builder of then made them, by `Kind/name`; applied as they are for as long as this revision runs. START_IN_RENDERING is
   * filled in. Empty as decided: whoever stores the revision makes it.
   */
  readonly rendering: Readonly<Record<string, unknown>>
  /** With that rendering; whoever stores the revision says it. Absent as decided, and in those of an operator that did not. */
  readonly natsSharing?: NatsSharing
  /** Hash of what the user wrote (spec without defaults) and the code: equal means that nothing is to be upgraded. Parallelism is apart. */
  readonly hash: string
  readonly parallelism: number
}

// ---- what is observed ----

/** Unknown is not false: what could not be read is `unknown`, with why. */
export type Fact<T> = { readonly known: true; readonly value: T } | { readonly known: false; readonly why: string }

/** A coordinator that has not begun says what it waits for. */
export type CoordinatorSays =
  | Extract<Fact<CoordinatorFact>, { readonly known: true }>
  | { readonly known: false; readonly why: string; readonly services?: ServicesFact }

/** The code that the spec names now. */
export type CodeFact =
  | { readonly kind: 'image' }
  /** What is in them is read again where it is stored. */
  | { readonly kind: 'files'; readonly configMap: string; readonly hash: string; readonly keys: readonly string[] }
  | { readonly kind: 'missing'; readonly why: string }
  /** Above 1 MiB: an image is needed. */
  | { readonly kind: 'too large'; readonly bytes: number }

/** What a short pod is for. */
export type PodPurpose =
  | 'admin-close'
  | 'admin-restore-point'
  | 'admin-commit'
  | 'admin-dispose'
  | 'admin-dispose-checkpoints'
  | 'preflight'

export interface PodFact extends ObjectIdentity {
  readonly component: 'coordinator' | 'worker' | 'admin' | 'preflight'
  readonly revision: string
  /** Of an admin or preflight pod, as runPod said. */
  readonly purpose: PodPurpose | undefined
  readonly request: string | undefined
  readonly createdAt: string
  readonly node: string | undefined
  /** Its node is gone or does not answer. */
  readonly nodeLost: boolean
  /** The node's own word is missing, not only that a taint evicted the pod: nobody there heeds a grace. */
  readonly nodeSilent: boolean
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly ready: boolean
  /** When its deletion was asked for (Kubernetes' deletionTimestamp less the grace), and the grace that it was given. */
  readonly deletingSince: string | undefined
  readonly graceSeconds: number | undefined
  /** The kubelet's or the scheduler's reason that it does not run, such as ImagePullBackOff, CrashLoopBackOff, Unschedulable. */
  readonly trouble: { readonly reason: string; readonly message: string } | undefined
  readonly exitCode: number | undefined
  /** Of an admin or preflight pod: the JSON that it printed. */
  readonly output: string | undefined
}

export interface ChildFact extends ObjectIdentity {
  readonly revision: string | undefined
  readonly start: number | undefined
  /** Of workloads; not part of `asRendered`. */
  readonly replicas: number | undefined
  /** Why the cluster lets a workload make no pods: its account is not there, a quota is used up, a policy forbids them. */
  readonly podsRefused: string | undefined
  /** Of a StatefulSet, which tells why in its events alone: pods that its controller has not made though it knows how many are asked for. */
  readonly podsMissing: number
  /** Whether it is as its revision's rendering says (our fields). */
  readonly asRendered: boolean
  readonly ownedByJob: boolean
  readonly deleting: boolean
}

/** Of what a job stands on; undefined: unknown. */
export interface ServicesFact {
  readonly storageAnswers: boolean | undefined
  readonly natsAnswers: boolean | undefined
}

/** What the coordinator's REST says; `unknown` with why while it does not answer. */
export interface CoordinatorFact extends ServicesFact {
  readonly start: number
  readonly incarnation: number
  readonly state: 'starting' | 'running' | 'restarting' | 'ending' | 'ended'
  readonly end: 'none' | 'suspended' | 'stopped' | 'finished' | 'failed' | 'cancelled'
  readonly reason: string | undefined
  readonly restorePoint: Omit<RecordedRestorePoint, 'readAt'>
  readonly restarts: number
  readonly parallelism: number
  readonly slotsNeeded: number | undefined
  readonly slotsOffered: number | undefined
  /** Worker pods by name, as it knows them. */
  readonly workers: readonly { readonly name: string; readonly state: 'registered' | 'leaving' | 'lost' }[]
  /** undefined: unknown. */
  readonly checkpointing: 'on' | 'off' | undefined
  readonly lastCheckpoint: StreamJobStatus['lastCheckpoint']
  /** HEAD's restore point was made by HEAD's own start. */
  readonly completedInStart: boolean
  readonly consecutiveFailures: number
  readonly lastFailure: string | undefined
  /** Of any kind. Their ids only grow, whichever coordinator or start gives them out. */
  readonly snapshots: {
    /** The greatest id that is known to be given out; 0: none is. */
    readonly newest: number
    readonly isPending: boolean
    readonly lastFailed: { readonly id: number; readonly detail: string } | undefined
  }
  /** How far it has come. */
  readonly progress: Measures
  /**
   * Answers to requests that status names, by request. A checkpoint's has none: `pending` once this operator has asked this coordinator, and
   * `failed` when nothing has become of it.
   */
  readonly requests: Readonly<
    Record<
      string,
      {
        readonly state: 'pending' | 'completed' | 'failed' | 'ended'
        readonly path?: string
        readonly id?: number
        readonly detail?: string
      }
    >
  >
}

/** Who else has a job's credentials for NATS: nobody, other jobs, or that cannot be told from here. */
export type NatsSharing = 'own' | 'shared' | 'unknown'
/** After "has". */
export const sharedNatsText =
  'no credentials for NATS of its own: jobs that share them can read and disturb each other. Give the chart a natsSigningKey, or the spec nats.credentialsSecret; the next revision has them.'

/** A worker's pod that is not there any more; its uid, as the next one has its name. */
export interface LostWorker {
  readonly name: string
  readonly uid: string
  readonly reason: string
}

export interface Observed {
  readonly nowMs: number
  /** The StreamJob as the cache has it; its resourceVersion is the precondition of every status write. */
  readonly job: ObjectIdentity & {
    readonly generation: number
    readonly deletingSince: string | undefined
    readonly finalizers: readonly string[]
  }
  readonly namespaceTerminating: boolean
  /** Validated, defaults of the chart beneath; or every problem, by field. */
  readonly spec:
    | {
        readonly fits: true
        readonly spec: EffectiveSpec
        readonly image: string
        /** Hash of what the user wrote of it (revision.ts): no default of the chart or the schema changes it. */
        readonly hash: string
      }
    | { readonly fits: false; readonly problems: readonly string[] }
  readonly code: Fact<CodeFact>
  /** undefined: never written, or emptied. */
  readonly status: StreamJobStatus | undefined
  readonly revisions: readonly Revision[]
  /** The running and the stable revision, where they are not among these: gone, or `unread`: why that is not known. */
  readonly unseen: readonly { readonly name: string; readonly unread?: string }[]
  /** By `Kind/name`. */
  readonly children: Readonly<Record<string, ChildFact>>
  readonly pods: readonly PodFact[]
  /** Worker pods that were seen to vanish (deleted, or absent from a relist) and not seen since. */
  readonly lostWorkers: readonly LostWorker[]
  readonly coordinator: CoordinatorSays
  /** Why the last act of this operator on this job was refused for good (quota, a field that there is not, no rights); conflicts are none. */
  readonly refusedAct?: string | undefined
  /** Pods that the API server has lately refused to take away by force, by uid, and why. They are tried again after a pause. */
  readonly refusedPods?: ReadonlyMap<string, string> | undefined
  /** Savepoint objects of this job's name, those of earlier namesakes too. */
  readonly savepoints: readonly SavepointFact[]
  readonly operatorVersion: string
}

// ---- what is decided ----

/**
 * Carried out in this order; one that fails ends the rest. After them one looks again, and if the same is decided again, with a growing
 * pause. Every action is idempotent, carries uid and resourceVersion of what it changes, and may have been done already by an operator
 * that died.
 */
export type Action =
  | { readonly type: 'addFinalizer' }
  | { readonly type: 'removeFinalizer' }
  /** Stores the revision, its immutable code, and makes its rendering. */
  | { readonly type: 'storeRevision'; readonly revision: Revision }
  | { readonly type: 'deleteRevision'; readonly revision: string }
  /** Server-side apply of the revision's rendering for this start: config, secrets, service, coordinator, workers. */
  | {
      readonly type: 'applyChildren'
      readonly revision: string
      readonly start: number
      readonly workers: number
      readonly begin: StartBegin
    }
  | { readonly type: 'scaleWorkers'; readonly to: number; readonly of: ObjectIdentity }
  /** Foreground where `wait`; never what is foreign. */
  | { readonly type: 'delete'; readonly of: ObjectIdentity; readonly force: boolean }
  | { readonly type: 'request'; readonly request: CoordinatorRequest }
  /** A short pod with the revision's image, credentials and config; its name is made of purpose and request, so that it is made once. */
  | {
      readonly type: 'runPod'
      readonly pod: PodPurpose
      readonly request: string
      readonly revision: string
      readonly start: number
      readonly begin: StartBegin
      /** After `millrace`, before `--config`. */
      readonly arguments: readonly string[]
    }
  /** Without a path one is triggered. */
  | { readonly type: 'createSavepoint'; readonly name: string; readonly path?: string }
  | {
      readonly type: 'recordSavepoint'
      readonly of: ObjectIdentity
      readonly state: 'completed' | 'failed'
      readonly path?: string
      readonly detail?: string
      readonly origin?: SavepointOrigin
    }
  | EventAction

export interface EventAction {
  readonly type: 'event'
  readonly kind: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export type CoordinatorRequest =
  | { readonly type: 'stop'; readonly start: number; readonly request: string; readonly drain: boolean }
  | { readonly type: 'close'; readonly start: number; readonly request: string }
  | { readonly type: 'cancel'; readonly start: number; readonly request: string }
  | { readonly type: 'rescale'; readonly start: number; readonly request: string; readonly parallelism: number }
  | { readonly type: 'savepoint'; readonly start: number; readonly request: string }
  | { readonly type: 'checkpoint'; readonly start: number; readonly request: string }
  | {
      readonly type: 'lost'
      readonly start: number
      readonly request: string
      readonly worker: string
      readonly reason: string
    }

export type Decision =
  | {
      readonly kind: 'record'
      readonly status: StreamJobStatus
      readonly why: string
      /** Told once the write has succeeded; lost if the operator dies then. */
      readonly events: readonly EventAction[]
    }
  | { readonly kind: 'act'; readonly actions: readonly Action[]; readonly why: string }
  | { readonly kind: 'wait'; readonly forMs: number | undefined; readonly why: string }
