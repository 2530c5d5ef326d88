// A consumer's channel from a producer in another slot: decodes elements when they are asked for, and carries out its machine.

import type { ChannelId } from '../base/ids.ts'
import type { ChannelItem } from '../record/element.ts'
import type { AssemblyBudget } from './assembly-budget.ts'
import { ChannelEnd } from './channel-end.ts'
import type { ChannelEndOptions } from './channel-end.ts'
import { ConsumerMachine } from './consumer-machine.ts'
import type { InputChannel } from './contract.ts'
import type { CreditAccount } from './credit-budget.ts'
import { readElement } from './element-codec.ts'
import { encodeFrame } from './frame.ts'
import type { ChannelMessage, CreditMessage } from './frame.ts'
import { TurnSignal } from './turn-signal.ts'

export interface RemoteInputOptions extends ChannelEndOptions {
  readonly credit: CreditAccount
  readonly assembly: AssemblyBudget
}

export class RemoteInput implements InputChannel {
  readonly id: ChannelId
  readonly #end: ChannelEnd
  readonly #machine: ConsumerMachine
  readonly #available: TurnSignal
  #ended = false
  #assemblePosted = false

  constructor(options: RemoteInputOptions) {
    this.id = options.route.channel
    const { credit, assembly, deadlineMs, environment } = options
    this.#machine = new ConsumerMachine({ credit, assembly, deadlineMs, onRoom: () => this.#assembleLater() })
    this.#end = new ChannelEnd(options, this.#machine, () => this.#signal())
    this.#available = new TurnSignal(environment.executor, false)
  }

  get available(): boolean {
    return !this.#end.closed && this.#machine.available
  }

  /** Throws MR-R… or MR-W06 when an element cannot be read. */
  next(): ChannelItem | undefined {
    if (this.#end.closed) return undefined
    const element = this.#machine.take()
    this.#end.carryOut()
    if (this.#machine.assembling) this.#assembleLater()
    this.#signal()
    if (element === undefined) return undefined
    this.#end.options.metrics?.add('bytes_in_total', element.length)
    const item = readElement(this.#end.options.type.batch, element)
    if (item.kind === 'end') this.#ended = true
    return item
  }

  block(): void {
    this.#machine.block()
    this.#signal()
  }

  unblock(): void {
    if (this.#end.closed) return
    this.#machine.unblock()
    this.#carryOut()
  }

  onAvailable(callback: () => void): void {
    this.#available.callback = callback
  }

  open(): void {
    if (this.#end.closed) return
    this.#machine.open(this.#end.nowMs)
    this.#carryOut()
  }

  /** A message of the producer; the hub has checked that it is for these attempts. */
  receive(message: ChannelMessage): void {
    if (message.kind === 'credit') return
    if (this.#end.closed) {
      this.#answerAfterClosing()
      return
    }
    if (message.kind === 'data') this.#machine.data(message)
    else this.#machine.repeat(message)
    this.#carryOut()
  }

  close(): void {
    this.#end.close()
    this.#available.close()
    this.#machine.close()
  }

  /** The end of data was taken. */
  get ended(): boolean {
    return this.#ended
  }

  /** The producer may not leave before it has heard that its end of data arrived; that word may have been lost (rule 19). */
  #answerAfterClosing(): void {
    if (!this.#ended) return
    const { route, peer, transport } = this.#end.options
    const { received, receivedBytes } = this.#machine
    const credit: CreditMessage = {
      kind: 'credit',
      received,
      limit: receivedBytes,
      answered: 0,
      opening: false,
      gap: false,
    }
    transport.send(peer, encodeFrame(route, credit))
  }

  #carryOut(): void {
    this.#end.carryOut()
    this.#signal()
  }

  #signal(): void {
    this.#available.update(this.available)
  }

  /** Not at once: the element just taken may be the barrier that blocks this channel (ConsumerMachine.assemble). */
  #assembleLater(): void {
    if (this.#assemblePosted) return
    this.#assemblePosted = true
    this.#end.options.environment.executor.post(() => {
      this.#assemblePosted = false
      if (this.#end.closed) return
      this.#machine.assemble()
      this.#carryOut()
    })
  }
}
