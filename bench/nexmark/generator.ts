// A port of the peer's Nexmark generator (1 person, 3 auctions and 46 bids in 50 events): event n is a function of n alone, and the
// order of draws is the peer's. Its checksums show that both make the same events (generator.test.ts).
//
// Events are made in blocks: all random letters of a block become one string, of which each event's texts are slices. Node's
// call for a string costs as much as the rest of the event: 1.6 against 1.0 million events a second of processor time, on a busy machine.

import type { Auction, Bid, NexmarkEvent, Person } from './events.ts'
import { EventRandom } from './random.ts'

/** Event time runs at so many events a second. */
const eventsPerSecond = 100_000
const activePeople = 1000
const firstId = 1000
/** 1 person, 3 auctions, 46 bids. */
const eventsPerEpoch = 50
const auctionsInFlight = 100
const channelCount = 10_000
/** Most letters in one event: an auction's name, description and extra. */
const lettersPerEventMax = 1024

const states = ['AZ', 'CA', 'ID', 'OR', 'WA', 'WY']
const cities = 'Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne'.split(',')
const firstNames = 'Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter'.split(',')
const lastNames = 'Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris'.split(',')
const hotChannels = ['Google', 'Facebook', 'Baidu', 'Apple']

/** Event time of event n, ms. */
export function eventTimeMs(n: number): number {
  return Math.floor((n * 1000) / eventsPerSecond)
}

/** Not to be called for two blocks at once: its letters are shared. */
export class NexmarkGenerator {
  readonly #random = new EventRandom()
  readonly #channels: readonly { readonly name: string; readonly url: string }[]
  readonly #hotChannels: readonly { readonly name: string; readonly url: string }[]
  /** Of the block being made; an event adds its own and says later where they lie. */
  #letters = Buffer.allocUnsafeSlow(lettersPerEventMax)
  #view = new DataView(this.#letters.buffer)
  #letterCount = 0
  /** Of each event's filler, in the order of the block. */
  #extraLengths = new Int32Array(0)
  #extraCount = 0

  constructor() {
    this.#channels = Array.from({ length: channelCount }, (_, index) => this.#channel(`channel-${index}`, -1 - index))
    this.#hotChannels = hotChannels.map((name, index) => this.#channel(name, -100_001 - index))
  }

  /** Events first, first + stride, … . */
  block(first: number, stride: number, count: number): NexmarkEvent[] {
    if (this.#letters.length < count * lettersPerEventMax) {
      this.#letters = Buffer.allocUnsafeSlow(count * lettersPerEventMax)
      this.#view = new DataView(this.#letters.buffer)
    }
    if (this.#extraLengths.length < count) this.#extraLengths = new Int32Array(count)
    this.#letterCount = 0
    this.#extraCount = 0
    const events: NexmarkEvent[] = []
    for (let index = 0, n = first; index < count; index++, n += stride) {
      this.#random.seed(n | 0, Math.floor(n / 4294967296) | 0)
      const place = n % eventsPerEpoch
      const epoch = (n - place) / eventsPerEpoch
      if (place === 0) events.push({ type: 0, person: this.#person(n, epoch), auction: null, bid: null })
      else if (place < 4) events.push({ type: 1, person: null, auction: this.#auction(n, epoch, place), bid: null })
      else events.push({ type: 2, person: null, auction: null, bid: this.#bid(n, epoch) })
    }
    this.#cutTexts(events)
    return events
  }

  // ---- one event: the draws in the peer's order. Texts are their lengths until the block's letters are cut. ----

  #person(n: number, epoch: number): Person {
    const random = this.#random
    const name = `${firstNames[random.below(firstNames.length)]!} ${lastNames[random.below(lastNames.length)]!}`
    this.#draw(7)
    this.#draw(5)
    const creditCard = `${random.below(10_000)} ${random.below(10_000)} ${random.below(10_000)} ${random.below(10_000)}`
    const city = cities[random.below(cities.length)]!
    const state = states[random.below(states.length)]!
    // An e-mail address has 17 characters.
    this.#drawExtra(8 + name.length + 17 + creditCard.length + city.length + state.length, 200)
    return {
      id: firstId + epoch,
      name,
      email: '',
      creditCard,
      city,
      state,
      dateTime: eventTimeMs(n),
      extra: '',
    }
  }

  #auction(n: number, epoch: number, place: number): Auction {
    const random = this.#random
    this.#draw(20)
    this.#draw(100)
    const initialBid = this.#price()
    const reserve = initialBid + this.#price()
    const dateTime = eventTimeMs(n)
    const expires = dateTime + 1 + random.below(20_000)
    const seller = firstId + (random.below(4) > 0 ? hot(epoch) : this.#nextPerson(epoch))
    const category = 10 + random.below(5)
    this.#drawExtra(176, 500)
    return {
      id: firstId + epoch * 3 + place - 1,
      itemName: '',
      description: '',
      initialBid,
      reserve,
      dateTime,
      expires,
      seller,
      category,
      extra: '',
    }
  }

  #bid(n: number, epoch: number): Bid {
    const random = this.#random
    const lastAuction = epoch * 3 + 2
    const auction = firstId + (random.below(2) > 0 ? hot(lastAuction) : this.#nextAuction(lastAuction))
    const bidder = firstId + (random.below(4) > 0 ? hot(epoch) + 1 : this.#nextPerson(epoch))
    const price = this.#price()
    const channel =
      random.below(2) > 0 ? this.#hotChannels[random.below(4)]! : this.#channels[random.below(channelCount)]!
    this.#drawExtra(32, 100)
    return {
      auction,
      bidder,
      price,
      channel: channel.name,
      url: channel.url,
      dateTime: eventTimeMs(n),
      extra: '',
    }
  }

  #nextPerson(lastPerson: number): number {
    const people = lastPerson + 1
    const active = Math.min(people, activePeople)
    return people - active + this.#random.below(active + 10)
  }

  #nextAuction(lastAuction: number): number {
    const first = Math.max(lastAuction - auctionsInFlight, 0)
    return first + this.#random.below(lastAuction - first + 11)
  }

  #price(): number {
    return Math.round(Math.pow(10, this.#random.unit() * 6) * 100)
  }

  // ---- letters ----

  #draw(length: number): void {
    const at = this.#letterCount
    this.#letterCount = at + length
    this.#random.letters(this.#view, at, at + length)
  }

  /** A filler, so that a record of `bytes` comes to about `bytesAim`. */
  #drawExtra(bytes: number, bytesAim: number): void {
    let length = 0
    if (bytes <= bytesAim) {
      const missing = bytesAim - bytes
      const spread = Math.round(missing * 0.2)
      length = missing - spread + (spread === 0 ? 0 : this.#random.below(2 * spread))
    }
    this.#draw(length)
    this.#extraLengths[this.#extraCount++] = length
  }

  #cutTexts(events: readonly NexmarkEvent[]): void {
    const letters = this.#letters.toString('latin1', 0, this.#letterCount)
    let at = 0
    const cut = (length: number): string => {
      at += length
      return letters.substring(at - length, at)
    }
    for (let index = 0; index < events.length; index++) {
      const { person, auction, bid } = events[index]!
      const extraLength = this.#extraLengths[index]!
      if (bid !== null) bid.extra = cut(extraLength)
      else if (auction !== null) {
        auction.itemName = cut(20)
        auction.description = cut(100)
        auction.extra = cut(extraLength)
      } else if (person !== null) {
        person.email = `${cut(7)}@${cut(5)}.com`
        person.extra = cut(extraLength)
      }
    }
  }

  #channel(name: string, seed: number): { readonly name: string; readonly url: string } {
    this.#random.seed(seed, -1)
    this.#letterCount = 0
    for (let part = 0; part < 3; part++) this.#draw(5)
    const letters = this.#letters.toString('latin1', 0, 15)
    const path = `${letters.slice(0, 5)}/${letters.slice(5, 10)}/${letters.slice(10)}`
    return { name, url: `https://www.nexmark.com/${path}/item.htm?query=1` }
  }
}

/** Of the last hundred ids, the one that most draws give. */
function hot(last: number): number {
  return last - (last % 100)
}
