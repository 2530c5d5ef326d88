// What REST takes to change a job, and how a request is answered.

import { z } from 'zod'
import { count, end, manifest, requestName } from './resources.ts'

export const nothing = z.strictObject({})

export type SavepointMode = 'savepoint' | 'stop' | 'drain'

const open = [
  z.strictObject({ request: z.string(), state: z.literal('pending') }),
  z.strictObject({ request: z.string(), state: z.literal('failed'), detail: z.string() }),
  z
    .strictObject({ request: z.string(), state: z.literal('ended'), detail: z.string() })
    .describe('the job is over, and not by this request'),
] as const

export const savepointRequest = z.discriminatedUnion('state', [
  ...open,
  z.strictObject({ request: z.string(), state: z.literal('completed'), savepoint: manifest }),
])

export const rescaleRequest = z.discriminatedUnion('state', [
  ...open,
  z
    .strictObject({ request: z.string(), state: z.literal('completed'), checkpoint: manifest })
    .describe('where the new size began'),
])

export const endRequest = z.strictObject({
  end: end
    .nullable()
    .describe('as HEAD says; null: it could not be read. Ask again until it is the end that is wanted'),
})

/** The words of every change. `identified`: a start and a request id must be given; else they may be. */
export function changeWords(identified: boolean) {
  const startWord = count.describe('the start of the job that is meant: another one is refused')
  const requestWord = requestName.describe('the same id is the same request, however often it is made')
  const optional = { start: startWord.optional(), request: requestWord.optional() }
  // What must be given is given in both forms: handlers know the looser one.
  const words = identified ? ({ start: startWord, request: requestWord } as unknown as typeof optional) : optional
  return {
    change: z.strictObject(words),
    stop: z.strictObject({ drain: z.boolean(), ...words }),
    rescale: z.strictObject({ parallelism: z.int().min(1), ...words }),
    lost: z.strictObject({ reason: z.string().min(1).max(1_000), ...words }),
  }
}

export type SavepointResource = z.output<typeof savepointRequest>
export type RescaleResource = z.output<typeof rescaleRequest>
export type EndResource = z.output<typeof endRequest>
