// A StreamJob of a scenario: applied, changed, looked at through kubectl and its coordinator's REST, and judged by the ledger.

import type { StreamJobStatus } from '../../../operator/contract.ts'
import { selectorText } from '../../../operator/resources/labels.ts'
import { accessKeys, ports, storageOfJob } from '../../../operator/resources/process-config.ts'
import { dialCoordinators } from '../../../operator/platform/coordinator-connection.ts'
import type { Cluster, Forward } from '../../cluster/contract.ts'
import type { LedgerClient } from '../../harness/ledger-client.ts'
import { exampleObjects } from './example.ts'
import { killPodsAt, podsAt, victimsAt } from './pods.ts'
import type { PodObject, PodsAt } from './pods.ts'
import { storedOf, usualAddress, withStorage } from './storage.ts'
import { found, wait } from './wait.ts'

const requestDeadlineMs = 5_000
/** Of the ledger job, unless told otherwise. */
const usualArgs = { splits: 4, keys: 100, ratePerSecond: 2_000 }

export interface JobObject {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly generation: number
    readonly deletionTimestamp?: string
  }
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: StreamJobStatus
}

export interface JobAnswer {
  readonly status: number
  // oxlint-disable-next-line no-explicit-any -- a scenario reads what it expects
  readonly body: any
}

export interface JobOptions {
  readonly name?: string
  /** Of the ledger job, over the usual ones. */
  readonly args?: Readonly<Record<string, unknown>>
  /** Over the example's spec, group by group. */
  readonly spec?: Readonly<Record<string, unknown>>
  /** Instead of the example's ConfigMap: name, and files by their names. */
  readonly code?: Readonly<Record<string, string>>
}

export type JobPart = 'coordinator' | 'worker'

/** To the REST of the coordinator of the job of this uid. */
interface Way {
  readonly uid: string
  readonly service: string
  readonly way: Forward
}

export class ScenarioJob {
  readonly name: string
  readonly namespace: string
  readonly #cluster: Cluster
  readonly #ledger: LedgerClient
  readonly #say: (text: string) => void
  #way: Way | undefined
  args: Readonly<Record<string, unknown>>

  constructor(
    at: { readonly cluster: Cluster; readonly namespace: string; readonly ledger: LedgerClient },
    { name = 'ledger', args }: JobOptions,
    say: (text: string) => void,
  ) {
    this.name = name
    this.namespace = at.namespace
    this.#cluster = at.cluster
    this.#ledger = at.ledger
    this.#say = say
    this.args = { url: 'http://ledger:7070', book: name, ...usualArgs, ...args }
  }

  /** The example's objects under this job's name. */
  async manifest({ spec, code }: JobOptions = {}): Promise<readonly object[]> {
    const [job, map] = await exampleObjects()
    const configMap = `${this.name}-job`
    const program = { module: { configMap: { name: configMap, key: 'job.ts' } }, args: this.args }
    return [
      {
        ...job,
        metadata: { name: this.name },
        spec: { ...job.spec, ...spec, program: { ...program, ...(spec?.['program'] as object) } },
      },
      { ...map, metadata: { name: configMap }, data: code ?? map.data },
    ]
  }

  async apply(options: JobOptions = {}): Promise<void> {
    await this.applyObjects(await this.manifest(options))
  }

  async applyObjects(objects: readonly object[]): Promise<void> {
    await this.#cluster.apply(objects, { namespace: this.namespace })
  }

  /** A merge patch of the spec. */
  async patch(spec: Readonly<Record<string, unknown>>): Promise<void> {
    const words = ['patch', 'streamjob', this.name, '--type=merge', '-p', JSON.stringify({ spec })]
    await this.kubectl(words)
  }

  async patchArgs(args: Readonly<Record<string, unknown>>): Promise<void> {
    // In a merge patch null takes a field away.
    const kept = Object.entries(args).map(([name, value]) => [name, value ?? null])
    this.args = Object.fromEntries(Object.entries({ ...this.args, ...args }).filter(([, value]) => value !== undefined))
    await this.patch({ program: { args: Object.fromEntries(kept) as object } })
  }

  kubectl(words: readonly string[], options?: Parameters<Cluster['kubectl']>[1]) {
    return this.#cluster.kubectl(['--namespace', this.namespace, ...words], options)
  }

  async object(): Promise<JobObject> {
    return this.#cluster.get<JobObject>(['--namespace', this.namespace, 'get', 'streamjob', this.name])
  }

  async status(): Promise<StreamJobStatus> {
    const { status } = await this.object()
    if (status === undefined) throw new Error(`streamjob ${this.name} has no status yet`)
    return status
  }

  /** Resolves with the status that fits. */
  until(
    what: string,
    fits: (status: StreamJobStatus, object: JobObject) => boolean,
    deadlineMs?: number,
  ): Promise<StreamJobStatus> {
    let last: StreamJobStatus | undefined
    const look = async (): Promise<StreamJobStatus | undefined> => {
      const object = await this.object()
      last = object.status
      return last !== undefined && fits(last, object) ? last : undefined
    }
    return found(what, look, deadlineMs, () => JSON.stringify(last))
  }

  running(deadlineMs?: number): Promise<StreamJobStatus> {
    return this.until(
      `${this.name} to run its newest spec`,
      ({ phase, observedGeneration, transition }, { metadata }) =>
        phase === 'RUNNING' && transition === undefined && observedGeneration === metadata.generation,
      deadlineMs,
    )
  }

  /** Nothing is under way, what runs has completed a checkpoint, and `fits`. */
  stable(what: string, fits: (status: StreamJobStatus) => boolean, deadlineMs?: number): Promise<StreamJobStatus> {
    return this.until(
      what,
      (status) =>
        status.phase === 'RUNNING' &&
        status.transition === undefined &&
        status.revision === status.stableRevision &&
        fits(status),
      deadlineMs,
    )
  }

  /** Of the component that are not on their way out. */
  async pods(component: JobPart): Promise<readonly PodObject[]> {
    return podsAt(this.#cluster, await this.#podsOf(component))
  }

  async killPods(component: JobPart, count?: number): Promise<void> {
    await killPodsAt(this.#cluster, await this.#podsOf(component), count)
  }

  async #podsOf(component: JobPart): Promise<PodsAt> {
    const { namespace, name } = this
    const { uid } = (await this.object()).metadata
    return { namespace, selector: selectorText({ namespace, name, uid }, component) }
  }

  /** kill -9 of the first process of each of these pods' containers; resolves once others follow. */
  async killContainers(component: JobPart, count = Number.POSITIVE_INFINITY): Promise<void> {
    const victims = await victimsAt(this.#cluster, await this.#podsOf(component), count)
    const idOf = ({ status }: PodObject): string | undefined => status.containerStatuses?.[0]?.containerID
    await Promise.all(
      victims.map(({ metadata }) =>
        this.#cluster.killContainer({ namespace: this.namespace, pod: metadata.name, container: component }),
      ),
    )
    await wait('the killed containers to be followed by others', async () => {
      const now = await this.pods(component)
      return victims.every((victim) => {
        const pod = now.find(({ metadata }) => metadata.name === victim.metadata.name)
        const id = pod && idOf(pod)
        return id !== undefined && id !== '' && id !== idOf(victim)
      })
    })
  }

  /** A port of this machine that leads to the coordinator's REST, also to the next coordinator's. */
  async coordinatorPort(): Promise<number> {
    return (await this.#wayTo((await this.object()).metadata.uid)).way.port
  }

  /** To the coordinator's REST with the owner's token. */
  async request(method: 'GET' | 'POST', path: string, body?: object): Promise<JobAnswer> {
    const { uid } = (await this.object()).metadata
    const { way, service } = await this.#wayTo(uid)
    const { data } = await this.#owned<{ readonly data: Readonly<Record<string, string>> }>('secret', uid)
    const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
    const connection = dialCoordinators({ host: '127.0.0.1', port: way.port })(
      {
        host: `${service}.${this.namespace}.svc`,
        port: ports.rest,
        token: text(accessKeys.ownerToken),
        authority: text(accessKeys.authority),
      },
      requestDeadlineMs,
    )
    try {
      return await connection.call(method, path, body)
    } finally {
      connection.close()
    }
  }

  /** The Service is the same for all starts of a job, and another one for a namesake. */
  async #wayTo(uid: string): Promise<Way> {
    if (this.#way?.uid === uid) return this.#way
    await this.close()
    const { metadata } = await this.#owned<{ readonly metadata: { readonly name: string } }>('service', uid)
    const service = metadata.name
    const options = { namespace: this.namespace, target: `service/${service}`, port: ports.rest }
    this.#way = { uid, service, way: await this.#cluster.forward(options) }
    return this.#way
  }

  async #owned<Value>(kind: string, uid: string): Promise<Value> {
    const words = ['--namespace', this.namespace, 'get', kind, '--selector', `millrace.dev/job=${uid}`]
    const { items } = await this.#cluster.get<{ readonly items: readonly Value[] }>(words)
    if (items[0] === undefined) throw new Error(`${this.name} has no ${kind}`)
    return items[0]
  }

  /** Resolves once so many checkpoints more have completed; by REST, since status is written now and then. */
  async checkpoints(more: number, deadlineMs?: number): Promise<void> {
    let seen: number | undefined
    let count = 0
    await wait(
      `${more} more checkpoints`,
      async () => {
        const id = await this.newestCheckpoint()
        if (seen !== undefined && id > seen) count++
        seen = id
        return count >= more
      },
      deadlineMs,
    )
  }

  /** Its id, 0: there is none. Rejects while nobody answers. */
  async newestCheckpoint(): Promise<number> {
    const { status, body } = await this.request('GET', '/v1/checkpoints')
    if (status !== 200) throw new Error(`GET /v1/checkpoints: ${status} ${JSON.stringify(body)}`)
    return (body.retained as readonly { readonly id: number }[]).at(-1)?.id ?? 0
  }

  report(question: Readonly<Record<string, unknown>> = {}) {
    const { book, splits, keys } = this.args as { book: string; splits: number; keys: number }
    return this.#ledger.report({ book, splits, keys, ...question })
  }

  /**
   * Nothing of what has come is wrong, more comes, and nothing before the newest that was there is missing for long: two sinks commit one after the
   * other.
   */
  async expectSound(): Promise<void> {
    const before = await this.#askLedger('a first report')
    let report = before
    await wait(
      'further records, and none missing among those before',
      async () => {
        report = await this.report()
        const contiguous = new Map(report.splits.map((split) => [split.split, split.contiguous]))
        return (
          report.present > before.present &&
          before.splits.every(({ split, highest }) => (contiguous.get(split) ?? -1) >= highest)
        )
      },
      undefined,
      () => JSON.stringify(report),
    )
    judge(report, {})
  }

  /**
   * The endless job is given an end that all of its records lie before, as an upgrade in its mode; when it has finished the ledger holds each record
   * once. So a scenario takes as long as what it does, and what is lost at the end is missed too.
   */
  async expectExactToTheEnd(): Promise<void> {
    const { splits } = await this.#askLedger('a report')
    const perSplit = Math.max(...splits.map(({ highest }) => highest)) + 20_000
    await this.patchArgs({ perSplit, ratePerSecond: undefined })
    await this.until(`${this.name} to finish`, ({ phase }) => phase === 'FINISHED', 240_000)
    await this.expectExact(perSplit)
  }

  async expectExact(perSplit: number): Promise<void> {
    const report = await this.#askLedger('the last report', { perSplit })
    judge(report, { lost: 0, present: (this.args['splits'] as number) * perSplit, exact: true })
    this.#say(`exact: ${report.present} records, none lost, doubled or reordered`)
  }

  /** The job began from nothing in between: `doubled` records are there twice, and each of the others once. */
  async expectDoubled(perSplit: number, doubled: number): Promise<void> {
    const report = await this.#askLedger('the last report', { perSplit, atLeastOnce: true })
    const present = (this.args['splits'] as number) * perSplit + doubled
    // Of the counts there are those of two lives.
    judge(report, { lost: 0, present, doubled, exact: true, wrongCounts: report.wrongCounts })
    this.#say(`${present} records: ${doubled} twice, none lost or reordered`)
  }

  #askLedger(what: string, question?: Readonly<Record<string, unknown>>) {
    return found(what, () => this.report(question))
  }

  /**
   * Deleted, and gone with all that it owned, and of its store but what HEAD retains; returns how long it took, ms. `isClosed` false: nobody was
   * there to close HEAD, and nobody looks.
   */
  async remove(deadlineMs = 60_000, { isClosed = true }: { readonly isClosed?: boolean } = {}): Promise<number> {
    const object = await this.object()
    const begunMs = performance.now()
    await this.kubectl(
      ['delete', 'streamjob', this.name, '--wait=true', `--timeout=${Math.ceil(deadlineMs / 1000)}s`],
      {
        deadlineMs: deadlineMs + 10_000,
      },
    )
    const tookMs = performance.now() - begunMs
    await this.close()
    await this.expectNoLeftovers(object)
    if (isClosed) await this.expectOnlyRetained(object)
    return tookMs
  }

  /** Of everything that has an owner label; garbage collection gets its time. `object`: as it was. */
  async expectNoLeftovers({ metadata: { uid } }: JobObject): Promise<void> {
    const kinds =
      'pods,services,secrets,configmaps,serviceaccounts,deployments.apps,statefulsets.apps,replicasets.apps,controllerrevisions.apps,poddisruptionbudgets.policy,networkpolicies.networking.k8s.io,ingresses.networking.k8s.io,persistentvolumeclaims'
    let left = ''
    await wait(
      `nothing of ${this.name} to be left`,
      async () => {
        left = (await this.kubectl(['get', kinds, '--selector', `millrace.dev/job=${uid}`, '-o', 'name'])).stdout.trim()
        return left === ''
      },
      60_000,
      () => left,
    )
  }

  /** Its folders in S3, for checkpoints and, where it has one apart, for savepoints: s3://bucket/prefix. `object`: as it is, or was. */
  async addresses({ metadata, spec }: JobObject): Promise<readonly string[]> {
    const { checkpoints = await usualAddress(this.#cluster), savepoints } = (spec['storage'] ?? {}) as {
      readonly checkpoints?: string
      readonly savepoints?: string
    }
    const owner = { namespace: this.namespace, name: this.name, uid: metadata.uid }
    return [checkpoints, ...(savepoints === undefined ? [] : [savepoints])].map((address) =>
      storageOfJob(address, owner),
    )
  }

  /** In S3, of a job that is gone: HEAD, closed, with as many checkpoints as its spec lets it keep, and whole savepoints. */
  async expectOnlyRetained(object: JobObject): Promise<void> {
    const [address] = await this.addresses(object)
    const { retained = 3, onCancellation } = (object.spec['checkpointing'] ?? {}) as {
      readonly retained?: number
      readonly onCancellation?: 'retain' | 'delete'
    }
    const { head, superfluous, missing } = await withStorage(this.#cluster, (storage) => storedOf(storage, address!))
    const wrong = [
      ...superfluous.map((key) => `${key} is left`),
      ...missing.map((key) => `${key} is missing`),
      ...(head?.end.kind === 'none' ? ['HEAD is not closed'] : []),
    ]
    const isGivenUp = onCancellation === 'delete' && head?.end.kind === 'cancelled'
    const [count, countMax] = [head?.retained.length ?? 0, isGivenUp ? 0 : retained]
    if (count > countMax) wrong.push(`HEAD retains ${count} checkpoints, not at most ${countMax}`)
    if (wrong.length > 0) throw new Error(`${this.name} has left in S3: ${wrong.join('; ')}\n${JSON.stringify(head)}`)
    const kept = head === undefined ? 'nothing' : `HEAD (${head.end.kind}) and ${count} checkpoints`
    this.#say(`in S3 there is of ${this.name} no more than ${kept}`)
  }

  async close(): Promise<void> {
    const way = this.#way
    this.#way = undefined
    await way?.way.close()
  }
}

function judge(report: Awaited<ReturnType<LedgerClient['report']>>, further: Readonly<Record<string, unknown>>): void {
  const expected = {
    doubled: 0,
    reordered: 0,
    unexpected: 0,
    wrongMagic: 0,
    wrongCounts: 0,
    ...further,
  }
  const wrong = Object.entries(expected).filter(([name, value]) => report[name as keyof typeof report] !== value)
  if (wrong.length > 0) {
    const words = wrong.map(
      ([name, value]) => `${name} is ${JSON.stringify(report[name as keyof typeof report])}, not ${String(value)}`,
    )
    throw new Error(`the ledger says: ${words.join('; ')}\n${JSON.stringify(report, undefined, 2)}`)
  }
}
