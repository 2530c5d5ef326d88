import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AssemblyBudget } from './assembly-budget.ts'
import { CreditBudget } from './credit-budget.ts'
import type { CreditAccount } from './credit-budget.ts'
import { CREDIT_BYTES_MAX, FRAGMENT_BYTES, WINDOW_BYTES_MAX } from './limits.ts'

describe('the credit budget', () => {
  it('gives one channel a full window', () => {
    const account = new CreditBudget().open()
    account.extend()
    expect(account.heldBytes).toBe(WINDOW_BYTES_MAX)
  })

  it('gives each of a thousand channels its share, and all together half of the budget at most', () => {
    const budget = new CreditBudget()
    const accounts = Array.from({ length: 1000 }, () => budget.open())
    for (const account of accounts) account.extend()
    const held = accounts.reduce((sum, account) => sum + account.heldBytes, 0)
    expect(held).toBeLessThanOrEqual(CREDIT_BYTES_MAX / 2)
    expect(Math.min(...accounts.map((account) => account.heldBytes))).toBeGreaterThanOrEqual(16 * 1024)
  })

  it('gives a late channel its reserve at least, though those before it hold all the rest', () => {
    const budget = new CreditBudget(4 * WINDOW_BYTES_MAX)
    for (let index = 0; index < 2; index++) budget.open().extend()
    const late = budget.open()
    late.extend()
    expect(late.heldBytes).toBe(FRAGMENT_BYTES)
  })

  it('refuses a channel for which there is no reserve', () => {
    const budget = new CreditBudget(4 * FRAGMENT_BYTES)
    budget.open()
    budget.open()
    expect(() => budget.open()).toThrow('MR-W05')
  })

  it('never holds more than half of it, leaves every channel its reserve, and gets everything back', () => {
    const total = 64 * FRAGMENT_BYTES
    const step = fc.record({
      do: fc.constantFrom('open', 'consume', 'extend', 'close'),
      index: fc.nat(20),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const budget = new CreditBudget(total)
        const accounts: CreditAccount[] = []
        for (const { do: what, index, part } of steps) {
          const account = accounts[index % Math.max(1, accounts.length)]
          if (what === 'open' && accounts.length < 20) {
            // A deployment opens its channels together, before any is given credit; a late one takes its reserve first.
            accounts.push(budget.open())
            accounts.at(-1)!.extend()
          } else if (what === 'consume') account?.consume(Math.floor(account.heldBytes * part))
          else if (what === 'extend') account?.extend()
          else if (what === 'close' && account !== undefined) {
            account.close()
            accounts.splice(accounts.indexOf(account), 1)
          }
          account?.extend()
          const held = accounts.map((each) => each.heldBytes)
          // A new channel's reserve may come on top until the others have consumed.
          expect(held.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(
            total / 2 + accounts.length * FRAGMENT_BYTES,
          )
          expect(Math.min(...held, FRAGMENT_BYTES)).toBe(FRAGMENT_BYTES)
        }
        for (const account of accounts) account.close()
        const fresh = budget.open()
        fresh.extend()
        expect(fresh.heldBytes).toBe(total / 2)
      }),
      { numRuns: 100 },
    )
  })
})

describe('the assembly budget', () => {
  it('lets a large record wait for room for all of it, and nobody overtakes it', () => {
    const budget = new AssemblyBudget(100)
    const [large, small, other] = [{}, {}, {}]
    const woken: string[] = []
    expect(budget.start(other, 60, () => undefined)).toBe(true)
    expect(budget.start(large, 90, () => woken.push('large'))).toBe(false)
    expect(budget.start(small, 10, () => woken.push('small'))).toBe(false)
    budget.finish(60)
    expect(woken).toEqual(['large'])
    expect(budget.start(small, 10, () => undefined)).toBe(false)
    expect(budget.start(large, 90, () => undefined)).toBe(true)
    expect(woken).toEqual(['large', 'small'])
    expect(budget.start(small, 10, () => undefined)).toBe(true)
  })

  it('passes the turn on when a waiting channel is blocked or closed', () => {
    const budget = new AssemblyBudget(100)
    const woken: string[] = []
    const [first, second, user] = [{}, {}, {}]
    budget.start(user, 60, () => undefined)
    budget.start(first, 90, () => woken.push('first'))
    budget.start(second, 40, () => woken.push('second'))
    budget.withdraw(first)
    expect(woken).toEqual(['second'])
  })
})
