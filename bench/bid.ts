// The record that codecs and channels are measured with: a bid as Nexmark has it, about 150 bytes.

import { z } from 'zod'

export const bid = z.object({
  auction: z.int(),
  bidder: z.int(),
  price: z.int(),
  dateTime: z.int(),
  channel: z.string(),
  url: z.string(),
  extra: z.string(),
})

export type Bid = z.infer<typeof bid>
