// The events of the peer's Nexmark generator, and the schema of bids, which is what its queries send over edges.

import { z } from 'zod'

export const bid = z.object({
  auction: z.int(),
  bidder: z.int(),
  price: z.int(),
  channel: z.string(),
  url: z.string(),
  dateTime: z.int(),
  extra: z.string(),
})

export type Bid = z.infer<typeof bid>

export interface Person {
  readonly id: number
  readonly name: string
  email: string
  readonly creditCard: string
  readonly city: string
  readonly state: string
  readonly dateTime: number
  extra: string
}

export interface Auction {
  readonly id: number
  itemName: string
  description: string
  readonly initialBid: number
  readonly reserve: number
  readonly dateTime: number
  readonly expires: number
  readonly seller: number
  readonly category: number
  extra: string
}

/** 0 person, 1 auction, 2 bid. */
export interface NexmarkEvent {
  readonly type: 0 | 1 | 2
  readonly person: Person | null
  readonly auction: Auction | null
  readonly bid: Bid | null
}

/** The peer's canonical texts, which its checksums are made of. */
export function bidText(bid: Bid): string {
  return `${bid.auction}|${bid.bidder}|${bid.price}|${bid.channel}|${bid.url}|${bid.dateTime}|${bid.extra}`
}

export function eventText({ person, auction, bid }: NexmarkEvent): string {
  if (person !== null) {
    const { id, name, email, creditCard, city, state, dateTime, extra } = person
    return `${id}|${name}|${email}|${creditCard}|${city}|${state}|${dateTime}|${extra}`
  }
  if (auction !== null) {
    const { id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra } = auction
    return `${id}|${itemName}|${description}|${initialBid}|${reserve}|${dateTime}|${expires}|${seller}|${category}|${extra}`
  }
  return bidText(bid!)
}
