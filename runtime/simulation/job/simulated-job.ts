// One job of a run, from its first start to what it leaves behind: ends it as its shape says, and judges it then.

import type { LedgerEntry } from '../../connectors/ledger.ts'
import { restorePointOf } from '../../storage/head.ts'
import type { Head, ManifestRef } from '../../storage/head-contract.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import type { Facts } from '../flows/flow.ts'
import { flows } from '../flows/flows.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { JobCluster } from './cluster.ts'
import type { Origin } from './cluster.ts'
import { entriesInFiles, judgeCancelled, judgeStore, longestPrefix, mayRepeat, wentBack } from './judge.ts'
import { readCut } from './savepoint-cut.ts'
import type { SavepointCut } from './savepoint-cut.ts'
import { recordsOf, sourceOf } from './shape.ts'
import type { JobShape } from './shape.ts'

/** Completed checkpoints before the last split may end, if it takes any: what is restored must have been checkpointed. */
const checkpointsMin = 2
/** How often it is looked whether the job may end now, virtual ms. */
const lookMs = 200
/** Savepoints are asked for by then, virtual ms. */
const savepointsMs = 6_000

export interface SimulatedJobOptions {
  readonly shape: JobShape
  readonly origin?: Origin
  /** Whether enough has befallen it, and it may come to its end. */
  readonly mayEnd: () => boolean
}

export class SimulatedJob {
  readonly shape: JobShape
  readonly cluster: JobCluster
  readonly #world: World
  readonly #mayEnd: () => boolean
  readonly #rescaled: JobShape | undefined
  #open = false
  #draining = false
  /** Once its end is written, once more for what that permits. */
  #finishing = false

  constructor(world: World, { shape, origin, mayEnd }: SimulatedJobOptions) {
    this.#world = world
    this.shape = shape
    this.#mayEnd = mayEnd
    this.cluster = new JobCluster(world, shape, origin)
    this.#rescaled = shape.rescaled === undefined ? undefined : { ...shape, parallelism: shape.rescaled }
    const moments = world.random.split(origin === undefined ? 'savepoints' : 'savepoints of the copy')
    for (let number = 0; number < shape.savepoints; number++)
      world.after(moments.between(0, savepointsMs), 'a savepoint is asked for', () => this.cluster.savepoint(number))
    this.cluster.begin()
    this.#look()
  }

  get progress(): string {
    return this.cluster.ledgers.map(({ entries }) => `${entries.length} results`).join(' and ')
  }

  get enoughCheckpoints(): boolean {
    return this.shape.checkpointIntervalMs === undefined || this.cluster.history.completed.size >= checkpointsMin
  }

  get hasCheckpoint(): boolean {
    return this.cluster.history.completed.size > 0
  }

  /** The first savepoint that was asked for by number, if it has completed: the job runs on. */
  get firstSavepoint(): ManifestRef | undefined {
    return this.cluster.history.newest?.savepointResults.find(({ request }) => request.startsWith('savepoint '))
      ?.manifest
  }

  /** Some splits of a bounded job end while others go on. */
  openEarly(random: SeededRandom): void {
    if (this.shape.ending !== 'bounded') return
    for (let split = 0; split < this.shape.splits; split++)
      if (this.shape.sudden) this.cluster.gate.open(split)
      else if (split > 0 && random.chance(0.5))
        this.#world.after(random.between(0, 6_000), 'a split ends early', () => this.cluster.gate.open(split))
  }

  /** A job that has ended may have left permitted commits: whoever starts it again has nothing else to do. False: there are none. */
  finishCommits(): boolean {
    if (this.shape.ending === 'bounded' || this.#finishing) return false
    this.#finishing = true
    this.cluster.finishCommits()
    return true
  }

  async judge(): Promise<string[]> {
    const { cluster, shape } = this
    const head = cluster.history.newest
    if (head === undefined) return ['The job has never begun.']
    const failures: string[] = []
    if (head.unconfirmed !== undefined) failures.push(`HEAD still holds unconfirmed commits of ${head.unconfirmed.id}.`)
    const cut = await this.#cut(head)
    for (const [index, { entries }] of cluster.ledgers.entries()) {
      const facts = this.#facts(shape.flow === 'regions' ? index : 0, cut, entries)
      failures.push(...flows[shape.flow].judge(facts, entries))
      if (shape.witness && cut !== undefined && shape.ending !== 'cut')
        failures.push(...cluster.witness.judge(facts.readOf))
    }
    if (!wentBack(cluster)) failures.push(...cluster.witness.judgeRepeats())
    const spared = shape.trial === 'lost coordinators' || shape.trial === 'outage'
    if (spared && !cluster.undisturbed)
      failures.push(`Subtasks were restarted, and all that happened was: ${shape.trial}.`)
    if (shape.files) failures.push(...(await this.#judgeFiles(cut)))
    return failures
  }

  /** What must hold also of a job that has not come to its end. */
  async judgeStored(): Promise<string[]> {
    const { cluster, shape } = this
    const { history, objects, savepoints } = cluster
    const failures: string[] = []
    const head = history.newest
    if (head !== undefined) failures.push(...(await judgeStore(head, objects)))
    failures.push(...(await savepoints.judge()))
    if (head?.end.kind === 'cancelled' && shape.onCancellation === 'delete' && this.#finishing)
      failures.push(
        ...(await judgeCancelled(head, history.completed.values(), { store: objects, staleLists: cluster.staleLists })),
      )
    const once = shape.sudden || shape.checkpointIntervalMs === undefined || cluster.origin !== undefined
    const least = once ? 1 : checkpointsMin
    if (history.completed.size < least) failures.push(`Only ${history.completed.size} checkpoints completed.`)
    return failures
  }

  /** How far the sources had come at what the job's results must be those of; undefined: to their end, or it is not known. */
  async #cut(head: Head): Promise<SavepointCut | undefined> {
    const { ending } = this.shape
    if (ending === 'bounded' || ending === 'quiet' || ending === 'cancelled') return undefined
    const point = restorePointOf(head)
    if (point.kind === 'empty') return { readOf: () => 0 }
    return readCut(this.cluster.objects, manualEnvironment(), point.manifest)
  }

  #facts(region: number, cut: SavepointCut | undefined, entries: readonly LedgerEntry[]): Facts {
    const { shape, cluster } = this
    const at = (cut: SavepointCut) => (split: number) => {
      const source = sourceOf(shape, region, split)
      return cut.readOf(source.uid, source.split)
    }
    const { origin } = cluster
    return {
      shape,
      readOf: cut === undefined ? longestPrefix(shape, entries) : at(cut),
      before: origin === undefined ? () => 0 : at(origin.cut),
      timeEnded: shape.ending === 'bounded' || shape.ending === 'drained',
      mayRepeat: mayRepeat(cluster),
      ordered: true,
    }
  }

  async #judgeFiles(cut: SavepointCut | undefined): Promise<string[]> {
    const [disk] = this.cluster.disks()
    if (disk === undefined) return ['There is no disk.']
    for (const machine of this.cluster.machinesOfJob) machine.crash('all has been committed')
    const entries = await entriesInFiles(disk)
    const facts = { ...this.#facts(0, cut, entries), ordered: false }
    return flows[this.shape.flow].judge(facts, entries).map((failure) => `Files: ${failure}`)
  }

  // ---- its end ----

  /** Not before something is there to go on from. */
  get #mayRescale(): boolean {
    if (this.#rescaled === undefined || this.cluster.rescaled || this.#world.nowMs < this.shape.rescaledAtMs)
      return false
    if (this.shape.rescaledBehindResults && this.cluster.ledgers.every(({ entries }) => entries.length === 0))
      return false
    // From where event time has ended nothing goes on.
    return !this.#draining && this.cluster.history.completed.size > 0
  }

  #look(): void {
    this.#world.after(lookMs, 'scenario looks', () => {
      if (this.cluster.ended) return
      if (this.#mayRescale) this.cluster.rescale(this.#rescaled!)
      else if (this.#mayEnd()) this.#end()
      this.#look()
    })
  }

  #end(): void {
    const { cluster, shape } = this
    switch (shape.ending) {
      case 'bounded':
        if (!this.#open) for (let split = 0; split < shape.splits; split++) cluster.gate.open(split)
        this.#open = true
        return
      case 'quiet':
        return this.#isComplete ? cluster.suspend() : undefined
      case 'cut':
        return shape.flow !== 'idle windows' || this.#isComplete ? cluster.suspend() : undefined
      case 'stopped':
        return cluster.stop(false)
      case 'drained':
        this.#draining = true
        return cluster.stop(true)
      case 'cancelled':
        return cluster.cancel()
      default:
        return shape.ending satisfies never
    }
  }

  get #isComplete(): boolean {
    const { shape, cluster } = this
    const readOf = (split: number): number => recordsOf(shape, split)
    return cluster.ledgers.every(({ entries }) =>
      flows[shape.flow].isComplete({ ...this.#facts(0, undefined, entries), readOf }, entries),
    )
  }
}
