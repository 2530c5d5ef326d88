// All channels of one slot's thread: makes them, routes frames to them, refuses frames of other attempts (rule 8), and shares
// out the credit of the slot's one data connection (rule 9).

import type { Environment } from '../base/environment.ts'
import type { MillraceError } from '../base/errors.ts'
import { formatAttempt, formatChannel, taskKey } from '../base/ids.ts'
import type { Attempt, JobId, SlotId, TaskId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { TypeInfo } from '../record/contract.ts'
import { AssemblyBudget } from './assembly-budget.ts'
import type { ChannelEndOptions } from './channel-end.ts'
import type { ChannelPeer, FrameTransport, InputChannel, OutputChannel } from './contract.ts'
import { CreditBudget } from './credit-budget.ts'
import { EndedInputs } from './ended-inputs.ts'
import type { FrameRoute } from './frame.ts'
import { FrameRouter } from './frame-router.ts'
import { memoryChannel } from './memory-channel.ts'
import { RemoteInput } from './remote-input.ts'
import { RemoteOutput } from './remote-output.ts'
import { creditSubject, dataSubject } from './subjects.ts'

export interface ChannelHubOptions {
  readonly job: JobId
  readonly slot: SlotId
  readonly transport: FrameTransport
  readonly environment: Environment
  /** Silence of a peer, ms, after which a waiting channel fails its subtask. */
  readonly deadlineMs: number
  /** For tests; CREDIT_BYTES_MAX by default. */
  readonly creditBytes?: number
}

/** The subtask of this slot that a channel is made for. */
export interface ChannelOwner {
  readonly task: TaskId
  readonly attempt: Attempt
  /** A channel is broken for good: the subtask must restart. */
  readonly fail: (error: MillraceError) => void
  readonly metrics?: MetricGroup
}

interface OwnedChannels {
  readonly assembly: AssemblyBudget
  readonly closing: (() => void)[]
}

interface LocalPair {
  readonly attempts: string
  readonly ends: ReturnType<typeof memoryChannel>
}

export class ChannelHub {
  readonly #options: ChannelHubOptions
  readonly #router: FrameRouter
  readonly #credit: CreditBudget
  readonly #ended = new EndedInputs()
  readonly #owners = new Map<string, OwnedChannels>()
  /** By channel: the newest attempts' pair. */
  readonly #local = new Map<string, LocalPair>()

  constructor(options: ChannelHubOptions) {
    this.#options = options
    this.#router = new FrameRouter(options.transport, options.environment)
    this.#credit = new CreditBudget(options.creditBytes)
  }

  /** Frames that were for no channel or attempt of this slot, or were no frames. */
  get refusedFrames(): number {
    return this.#router.refused
  }

  /** The producer's end. `peer` is the consumer. */
  output(peer: ChannelPeer, type: TypeInfo<unknown>, owner: ChannelOwner): OutputChannel {
    const route: FrameRoute = { channel: peer.channel, producerAttempt: owner.attempt, consumerAttempt: peer.attempt }
    if (peer.address.slot === this.#options.slot) return this.#localEnd(route, owner, 'output').output
    const output = new RemoteOutput(this.#endOptions(route, peer, type, owner))
    const unroute = this.#router.route(creditSubject(this.#options.job, owner), route, (message) =>
      output.receive(message),
    )
    this.#ownedBy(owner).closing.push(() => {
      output.close()
      unroute()
    })
    return output
  }

  /** The consumer's end. `peer` is the producer. Throws MR-W05 when the slot has too many channels. */
  input(peer: ChannelPeer, type: TypeInfo<unknown>, owner: ChannelOwner): InputChannel {
    const route: FrameRoute = { channel: peer.channel, producerAttempt: peer.attempt, consumerAttempt: owner.attempt }
    if (peer.address.slot === this.#options.slot) return this.#localEnd(route, owner, 'input').input
    const owned = this.#ownedBy(owner)
    const credit = this.#credit.open()
    const input = new RemoteInput({ ...this.#endOptions(route, peer, type, owner), credit, assembly: owned.assembly })
    const subject = dataSubject(this.#options.job, owner)
    this.#ended.forgetOtherAttempts(owner.task, owner.attempt)
    const unroute = this.#router.route(subject, route, (message) => input.receive(message))
    owned.closing.push(() => {
      input.close()
      // It goes on answering a producer that has not heard that its end of data arrived.
      if (input.ended) this.#ended.keep(owner, unroute)
      else unroute()
    })
    return input
  }

  /** Closes all channels of a subtask's attempt. */
  close(task: TaskId, attempt: Attempt): void {
    const key = ownerKey(task, attempt)
    for (const close of this.#owners.get(key)?.closing ?? []) close()
    this.#owners.delete(key)
  }

  /** Closes everything, subscriptions too. */
  closeAll(): void {
    for (const { closing } of this.#owners.values()) for (const close of closing) close()
    this.#owners.clear()
    this.#ended.clear()
  }

  #endOptions(route: FrameRoute, peer: ChannelPeer, type: TypeInfo<unknown>, owner: ChannelOwner): ChannelEndOptions {
    const { transport, environment, deadlineMs } = this.#options
    return {
      route,
      peer: peer.address,
      type,
      transport,
      environment,
      deadlineMs,
      metrics: owner.metrics,
      fail: owner.fail,
    }
  }

  #ownedBy(owner: ChannelOwner): OwnedChannels {
    const key = ownerKey(owner.task, owner.attempt)
    let owned = this.#owners.get(key)
    if (owned === undefined) {
      owned = { assembly: new AssemblyBudget(), closing: [] }
      this.#owners.set(key, owned)
    }
    return owned
  }

  /**
   * Both ends live in this slot: whoever comes first makes the pair. It stays until its consumer closes it, for a producer
   * may have ended before its consumer was deployed, or until other attempts take its place.
   */
  #localEnd(route: FrameRoute, owner: ChannelOwner, end: 'output' | 'input'): ReturnType<typeof memoryChannel> {
    const key = formatChannel(route.channel)
    const attempts = `${formatAttempt(route.producerAttempt)}>${formatAttempt(route.consumerAttempt)}`
    let local = this.#local.get(key)
    if (local?.attempts !== attempts) {
      local = { attempts, ends: memoryChannel(route.channel, this.#options.environment.executor) }
      this.#local.set(key, local)
    }
    const { ends } = local
    this.#ownedBy(owner).closing.push(() => {
      ends[end].close()
      if (end === 'input' && this.#local.get(key) === local) this.#local.delete(key)
    })
    return ends
  }
}

function ownerKey(task: TaskId, attempt: Attempt): string {
  return `${taskKey(task)}@${formatAttempt(attempt)}`
}
