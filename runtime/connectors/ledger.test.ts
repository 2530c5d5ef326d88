import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { taskOf } from './conformance-support.ts'
import type { Sink } from './contract.ts'
import { FileLedger } from './file-ledger.ts'
import { ledgerSink, plainLedgerSink, type LedgerEntry, type LedgerSystem } from './ledger.ts'
import { MemoryLedger } from './memory-ledger.ts'
import { printSink } from './print.ts'
import { LEDGER_MAGIC } from './sequence.ts'

const entry = (n: number): LedgerEntry => ({ split: 0, n, magic: LEDGER_MAGIC })

async function writerOf<T>(sink: Sink<T>, attempt = 1) {
  const failures: unknown[] = []
  const environment = manualEnvironment()
  const writer = sink.createWriter({
    environment,
    files: new MemoryFiles(),
    task: taskOf({ subtask: 0, parallelism: 1, attempt }),
    uid: 'ledger',
    newestKnownCheckpoint: checkpointId(0),
    metrics: new Metrics(),
    restored: { items: [] },
    fail: (error) => failures.push(error),
    wake: () => undefined,
  })
  await writer.open()
  return { writer, failures, environment }
}

const forms: readonly [string, () => { system: LedgerSystem; entries: () => Promise<readonly LedgerEntry[]> }][] = [
  [
    'in memory',
    () => {
      const ledger = new MemoryLedger()
      return { system: ledger, entries: async () => ledger.entries }
    },
  ],
  [
    'in files',
    () => {
      const ledger = new FileLedger(new MemoryFiles(), 'ledger')
      return { system: ledger, entries: () => ledger.entries() }
    },
  ],
]

for (const [form, create] of forms) {
  describe(`ledger ${form}`, () => {
    it('shows a transaction only once it is committed, whole and once', async () => {
      const { system, entries } = create()
      await system.append('t', [entry(1)])
      await system.append('t', [entry(2)])
      await system.preCommit('t')
      await system.preCommit('t')
      expect(await entries()).toEqual([])
      expect(await system.list()).toEqual(['t'])
      await system.commit('t')
      await system.commit('t')
      await system.preCommit('t')
      expect(await entries()).toEqual([entry(1), entry(2)])
      expect(await system.list()).toEqual([])
    })

    it('refuses what would lose or double entries', async () => {
      const { system } = create()
      await expect(system.commit('unknown')).rejects.toMatchObject({ code: 'MR-N12', retry: false })
      await expect(system.preCommit('unknown')).rejects.toMatchObject({ code: 'MR-N12' })
      await system.append('t', [entry(1)])
      await expect(system.commit('t')).rejects.toThrow('not pre-committed')
      await system.preCommit('t')
      await expect(system.append('t', [entry(2)])).rejects.toThrow('no more entries')
      await system.commit('t')
      await expect(system.append('t', [entry(2)])).rejects.toThrow('no more entries')
      await expect(system.abort('t')).rejects.toThrow('cannot be aborted')
    })

    it('lets a frozen process pre-commit late what was aborted, for the next sweep to find', async () => {
      const { system, entries } = create()
      await system.append('t', [entry(1)])
      await system.abort('t')
      await system.abort('t')
      await system.append('t', [entry(2)])
      await system.preCommit('t')
      expect(await system.list()).toEqual(['t'])
      await system.abort('t')
      expect(await entries()).toEqual([])
      expect(await system.list()).toEqual([])
    })
  })
}

describe('ledger in files', () => {
  it('shows transactions in the order in which attempts and checkpoints made them', async () => {
    const ledger = new FileLedger(new MemoryFiles(), 'ledger')
    const sink = ledgerSink(ledger)
    const first = await writerOf(sink, 1)
    const second = await writerOf(sink, 2)
    const names: string[] = []
    for (const [n, { writer }] of [first, first, second].entries()) {
      writer.write(entry(n), 0)
      names.push((await writer.prepareCommit(checkpointId(9 + n), false))[0]!.transaction)
    }
    for (const name of names.toReversed()) await ledger.commit(name)
    expect((await ledger.entries()).map(({ n }) => n)).toEqual([0, 1, 2])
  })
})

describe('ledger sinks', () => {
  it('surface a rejected write before the acknowledgement, not after (B22)', async () => {
    const ledger = new MemoryLedger()
    const rejecting: LedgerSystem = {
      append: async () => {
        throw new Error('connection lost')
      },
      preCommit: (name) => ledger.preCommit(name),
      commit: (name) => ledger.commit(name),
      abort: (name) => ledger.abort(name),
      list: () => ledger.list(),
    }
    const { writer, failures } = await writerOf(ledgerSink(rejecting))
    writer.write(entry(1), 0)
    await expect(writer.prepareCommit(checkpointId(1), false)).rejects.toThrow('connection lost')
    expect(failures).toHaveLength(1)
    expect(() => writer.write(entry(2), 0)).toThrow('connection lost')
  })

  it('send many entries in pieces that stay one transaction', async () => {
    const ledger = new MemoryLedger()
    const { writer } = await writerOf(ledgerSink(ledger))
    for (let n = 0; n < 1_000; n++) writer.write(entry(n), 0)
    const prepared = await writer.prepareCommit(checkpointId(1), false)
    expect(prepared).toHaveLength(1)
    await ledger.commit(prepared[0]!.transaction)
    expect(ledger.entries.map(({ n }) => n)).toEqual(Array.from({ length: 1_000 }, (_, n) => n))
  })

  it('without two phases commit at each barrier and leave nothing to commit', async () => {
    const ledger = new MemoryLedger()
    const { writer } = await writerOf(plainLedgerSink(ledger))
    writer.write(entry(1), 0)
    expect(ledger.entries).toEqual([])
    expect(await writer.prepareCommit(checkpointId(1), false)).toEqual([])
    expect(ledger.entries).toEqual([entry(1)])
    expect(plainLedgerSink(ledger).createCommitter).toBeUndefined()
  })
})

describe('print sink', () => {
  it('writes a line per record, to the log or where it is told', async () => {
    const { writer, environment } = await writerOf(printSink<unknown>())
    writer.write({ n: 1n, text: 'a' }, 5)
    expect(environment.lines.map(({ message }) => message)).toEqual(['{"n":"1n","text":"a"}'])
    const lines: string[] = []
    const other = await writerOf(
      printSink<number>({ format: (value, at) => `${at}: ${value}`, writeLine: (line) => lines.push(line) }),
    )
    other.writer.write(7, 3)
    expect(await other.writer.prepareCommit(checkpointId(1), false)).toEqual([])
    expect(lines).toEqual(['3: 7'])
  })
})
