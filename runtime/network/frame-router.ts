// From a subject to the channel that a frame is for. One subscription per subject, however many channels listen on it (rule 8).

import type { Environment } from '../base/environment.ts'
import { formatAttempt, formatChannel } from '../base/ids.ts'
import type { FrameTransport } from './contract.ts'
import { decodeFrame } from './frame.ts'
import type { ChannelMessage, FrameRoute } from './frame.ts'

interface Subscription {
  readonly channels: Map<string, (message: ChannelMessage) => void>
  readonly close: () => void
}

export class FrameRouter {
  refused = 0
  readonly #transport: FrameTransport
  readonly #environment: Environment
  readonly #subscriptions = new Map<string, Subscription>()

  constructor(transport: FrameTransport, environment: Environment) {
    this.#transport = transport
    this.#environment = environment
  }

  /** Frames of exactly this channel and these attempts go to `receive` until the returned function is called. */
  route(subject: string, route: FrameRoute, receive: (message: ChannelMessage) => void): () => void {
    const { channels, close } = this.#subscription(subject)
    const key = routeKey(route)
    channels.set(key, receive)
    return () => {
      if (channels.get(key) !== receive) return
      channels.delete(key)
      if (channels.size > 0) return
      this.#subscriptions.delete(subject)
      close()
    }
  }

  #subscription(subject: string): Subscription {
    const known = this.#subscriptions.get(subject)
    if (known !== undefined) return known
    const channels: Subscription['channels'] = new Map()
    const listening = this.#transport.subscribe(subject, (bytes) => this.#arrive(subject, channels, bytes))
    const subscription = { channels, close: () => listening.close() }
    this.#subscriptions.set(subject, subscription)
    return subscription
  }

  #arrive(subject: string, channels: Subscription['channels'], bytes: Uint8Array): void {
    const frame = decodeFrame(bytes)
    if ('malformed' in frame) {
      this.#refuse(subject, frame.malformed)
      return
    }
    const receive = channels.get(routeKey(frame.route))
    if (receive === undefined) this.#refuse(subject, `nobody listens for ${routeKey(frame.route)}`)
    else receive(frame.message)
  }

  #refuse(subject: string, reason: string): void {
    this.refused++
    this.#environment.log('debug', 'A frame was refused.', { subject, reason, refused: this.refused })
  }
}

/** The attempts are part of the key: a frame of another attempt finds nobody. */
function routeKey(route: FrameRoute): string {
  return `${formatChannel(route.channel)}@${formatAttempt(route.producerAttempt)}>${formatAttempt(route.consumerAttempt)}`
}
