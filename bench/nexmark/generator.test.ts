import { describe, expect, it } from 'vitest'
import { bidText, eventText } from './events.ts'
import { NexmarkGenerator } from './generator.ts'

/** FNV-1a of each text, summed modulo 2^32, as the peer does. */
function checksum(texts: readonly string[]): number {
  let sum = 0
  for (const text of texts) {
    let hash = 0x811c9dc5
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 16777619)
    sum = (sum + (hash >>> 0)) % 4294967296
  }
  return sum
}

describe('the Nexmark generator', () => {
  it("makes the peer's first hundred thousand events", () => {
    const events = new NexmarkGenerator().block(0, 1, 100_000)
    // `./run1.sh kind=check q=q0 n=100000` and q=q0k.
    expect(checksum(events.map(eventText))).toBe(3608809316)
    expect(checksum(events.flatMap(({ bid }) => (bid === null ? [] : [bidText(bid)])))).toBe(775745747)
  })

  it("makes the peer's bid 1,000,049", () => {
    const [event] = new NexmarkGenerator().block(1_000_049, 1, 1)
    // `sample_bid_1000049` of `./run1.sh kind=gen`.
    expect(bidText(event!.bid!)).toBe(
      '61000|20940|1539615|channel-6014|https://www.nexmark.com/jboiw/q_jwd/lunkf/item.htm?query=1|10000|CpqigwDpgvA_xr_ihitAkgpppBasCef_qlsB ckaiDlpgwrbAjkqsebffrs_xpysndmcbxg',
    )
  })

  it('makes the same event in a block of any size and stride', () => {
    const generator = new NexmarkGenerator()
    const whole = generator.block(0, 1, 300).map(eventText)
    const odd = generator.block(1, 2, 150).map(eventText)
    expect(odd).toEqual(whole.filter((_, n) => n % 2 === 1))
  })
})
