// As somebody outside would use the test kit: through the package's own entries alone. The first part stands in docs/testing.md.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import { LEDGER_MAGIC, MemoryLedger, ledgerSink, sequence } from 'millrace/connectors'
import { manualEnvironment, MemoryFiles, processOperator, sinkClaims, sourceClaims } from 'millrace/testkit'
import { expect, it } from 'vitest'
import { valueState, z } from 'millrace'
import type { KeyedProcessFunction } from 'millrace'
import { keyedProcessOperator, openHarness } from 'millrace/testkit'

interface Visit {
  readonly user: string
}

const state = { visits: valueState('visits', z.int()) }

/** Says how many visits each user made, a minute after the first. */
const visitsOfMinute: KeyedProcessFunction<string, Visit, typeof state, string> = {
  state,
  process(_visit, { state: { visits }, timers, timestamp = 0 }) {
    if (visits.get() === undefined) timers.register('event', timestamp + 60_000)
    visits.update((visits.get() ?? 0) + 1)
  },
  onTimer(_timer, { key, state: { visits }, emit }) {
    emit(`${key}: ${visits.get()}`)
    visits.clear()
  },
}

it('counts the visits of each user, also over a restore', async () => {
  const options = { operator: keyedProcessOperator(visitsOfMinute), keySelector: ({ user }: Visit) => user }
  const first = await openHarness(options)
  first.process({ user: 'ada' }, 0)
  first.process({ user: 'bob' }, 10_000)
  first.process({ user: 'ada' }, 20_000)
  const second = await openHarness({ ...options, restored: [await first.snapshot()] })
  second.watermark(60_000)
  expect(second.takeOutput()).toEqual([{ value: 'ada: 2', timestamp: 60_000 }])
})

describe('the test kit', () => {
  it('is used in docs/testing.md as it is in tests here', async () => {
    const text = (path: string) => readFile(fileURLToPath(new URL(path, import.meta.url)), 'utf8')
    const tests = await Promise.all(
      ['api', 'example-cluster', 'example-operator', 'example-claims'].map((name) => text(`./${name}.test.ts`)),
    )
    const page = await text('../../docs/testing.md')
    const shown = [...page.matchAll(/```ts test\n([\s\S]*?)```/g)].map(([, snippet]) => snippet!)
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.filter((snippet) => !tests.some((test) => test.includes(snippet)))).toEqual([])
  })

  it('runs a process function without a key, moves its clock and shows side outputs, failures and log lines', async () => {
    const harness = await openHarness({
      operator: processOperator<number, string>({
        process(value, { emit, processingTimeMs }) {
          emit(`${value} at ${processingTimeMs}`)
        },
      }),
    })
    const wallMs = harness.environment.clock.wallMs()
    await harness.advance(1_500)
    harness.process(7)
    expect(harness.takeOutput()).toEqual([{ value: `7 at ${wallMs + 1_500}`, timestamp: undefined }])
    expect(harness.failures).toEqual([])
    expect(harness.environment.lines).toEqual([])
  })
})

describe('claims of a source', () => {
  const environment = manualEnvironment()
  const claims = sourceClaims({
    name: 'sequence',
    createSource: () => sequence({ splits: 2, perSplit: 5 }),
    environment,
    files: new MemoryFiles(),
    settle: () => environment.clock.advanceSettled(10),
    expected: [0, 1].flatMap((split) => [0, 1, 2, 3, 4].map((n) => ({ split, n, magic: LEDGER_MAGIC }))),
    keyOf: (record) => JSON.stringify(record),
  })
  for (const { name, run } of claims) it(name, run)
})

describe('claims of a sink', () => {
  const claims = sinkClaims('ledger', () => {
    const ledger = new MemoryLedger()
    return {
      name: 'ledger',
      createSink: () => ledgerSink(ledger),
      environment: manualEnvironment(),
      files: new MemoryFiles(),
      record: (n) => ({ split: 0, n, magic: LEDGER_MAGIC }),
      keyOf: ({ n }) => String(n),
      visible: async () => ledger.entries,
    }
  })
  for (const { name, run } of claims) it(name, run)
})
