// How manifests write durations and Kubernetes' quantities: the one place that takes them apart.

import { z } from 'zod'

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const DURATION = /^(\d+)(ms|s|m|h|d)$/

/** `500ms`, `10s`, `10m`, `6h`, `7d`; gives ms. */
export const duration = durationFrom(0)

/** One that cannot be nothing. */
export const positiveDuration = durationFrom(1)

function durationFrom(leastMs: 0 | 1) {
  return z
    .string({ error: ({ input }) => (input === undefined ? undefined : durationError(input)) })
    .regex(DURATION, { error: ({ input }) => durationError(input) })
    .transform((text, context) => {
      const ms = durationMs(text)
      if (Number.isSafeInteger(ms) && ms >= leastMs) return ms
      context.addIssue({
        code: 'custom',
        message: leastMs > ms ? 'must be longer than nothing' : 'is too long',
        input: text,
      })
      return z.NEVER
    })
}

function durationMs(text: string): number {
  const [, count, unit] = DURATION.exec(text)!
  return Number(count) * unitsMs[unit!]!
}

function durationError(input: unknown): string {
  return `is ${JSON.stringify(input)}; a duration is a whole number and ms, s, m, h or d, such as 10s`
}

const noQuantity = 'must be an amount, such as 500m, 2 or 512Mi'

/** What no cluster has needs no more digits; an exponent of a million would be a million digits to compare. */
const QUANTITY = /^(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2})|(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei))?$/

/** As the API server takes amounts of memory and processors: `512Mi`, `1`, `500m`. Kept as written. */
export const quantity = z
  .union([z.number().nonnegative(), z.string().regex(QUANTITY, noQuantity)], noQuantity)
  .meta({ 'x-kubernetes-int-or-string': true, pattern: QUANTITY.source, minimum: 0 })

const suffixes: Readonly<Record<string, number>> = {
  '': 0,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}
const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

/** An amount in thousandths, exactly, so that 700m and 0.7 are one; undefined: it is no amount. */
export function thousandthsOf(value: unknown): bigint | undefined {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string') return undefined
  const match = QUANTITY.exec(text)
  if (match === null) return undefined
  const [, whole = '', fraction = '', exponent, suffix = ''] = match
  const power = 3 + (exponent === undefined ? (suffixes[suffix] ?? 0) : Number(exponent)) - fraction.length
  const scale = 1024n ** BigInt(Math.max(0, binary.indexOf(suffix)))
  const digits = BigInt(whole + fraction) * scale
  // Kubernetes rounds up what is below a thousandth.
  return power >= 0 ? digits * 10n ** BigInt(power) : (digits + 10n ** BigInt(-power) - 1n) / 10n ** BigInt(-power)
}
