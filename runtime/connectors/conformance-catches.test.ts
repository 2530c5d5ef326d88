// The suites' own proof: each kind of wrong source and sink is seen by at least one claim, and the right ones by none.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId } from '../base/ids.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { plainSinkClaims, sinkClaims, sourceClaims } from './conformance.ts'
import type { Claim, SinkCase } from './conformance.ts'
import type { Committer, EnumeratorContext, ReaderContext, Sink, SinkWriter, Source } from './contract.ts'
import type { SourceReader, SplitEnumerator } from './contract.ts'
import { dataGenerator } from './datagen.ts'
import { jsonLineFiles } from './json-lines.ts'
import { ledgerSink, plainLedgerSink } from './ledger.ts'
import type { LedgerEntry, LedgerSystem } from './ledger.ts'
import { MemoryLedger } from './memory-ledger.ts'
import type { NumberedSplit } from './numbered-source.ts'
import { LEDGER_MAGIC } from './sequence.ts'

async function failing(claims: readonly Claim[]): Promise<string[]> {
  const failed: string[] = []
  for (const { name, run } of claims) {
    await run().catch((error: unknown) => failed.push(`${name}: ${String(error)}`))
  }
  return failed
}

/** Whether any fails; asks no further then. */
async function seenBy(claims: readonly Claim[]): Promise<boolean> {
  for (const { run } of claims) {
    const failed = await run().then(
      () => false,
      () => true,
    )
    if (failed) return true
  }
  return false
}

// ---- sources ----

type Numbers = ReturnType<typeof dataGenerator<number>>
type StateOf<S> = S extends Source<number, NumberedSplit, infer State> ? State : never
type Reader = SourceReader<number, NumberedSplit>
type Enumerator = SplitEnumerator<NumberedSplit, StateOf<Numbers>>

interface Spoil {
  readonly readerContext?: (context: ReaderContext) => Partial<ReaderContext>
  readonly reader?: (reader: Reader) => Partial<Reader>
  readonly enumeratorContext?: (context: EnumeratorContext<NumberedSplit>) => Partial<EnumeratorContext<NumberedSplit>>
  readonly enumerator?: (enumerator: Enumerator) => Partial<Enumerator>
}

/** The same object with some of its members replaced. */
function spoilt<T extends object>(target: T, changed: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = name in changed ? Reflect.get(changed, name) : Reflect.get(target, name)
      return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, target, args) as unknown : value
    },
  })
}

function claimsOfSource(spoil: Spoil): readonly Claim[] {
  const environment = manualEnvironment()
  const createSource = (): Numbers => {
    const source = dataGenerator({ create: (n) => n, count: 40, splits: 4, ratePerSecond: 400 })
    return {
      ...source,
      createReader: (context) => {
        const reader = source.createReader({ ...context, ...spoil.readerContext?.(context) })
        return spoilt(reader, spoil.reader?.(reader) ?? {})
      },
      createEnumerator: (context, restored) => {
        const enumerator = source.createEnumerator({ ...context, ...spoil.enumeratorContext?.(context) }, restored)
        return spoilt(enumerator, spoil.enumerator?.(enumerator) ?? {})
      },
    }
  }
  return sourceClaims({
    name: 'source',
    createSource,
    environment,
    files: new MemoryFiles(),
    settle: async () => {
      await environment.executor.runAllSettled()
      await environment.clock.advanceSettled(50)
    },
    expected: Array.from({ length: 40 }, (_, n) => n),
    keyOf: String,
  })
}

const wrongSources: Readonly<Record<string, () => Spoil>> = {
  'snapshots a position one too early': () => ({
    reader: (reader) => ({
      snapshot: (id) => reader.snapshot(id).map((split) => ({ ...split, next: Math.max(0, split.next - 1) })),
    }),
  }),
  'snapshots a position one too late': () => ({
    reader: (reader) => ({
      snapshot: (id) => reader.snapshot(id).map((split) => ({ ...split, next: split.next + 1 })),
    }),
  }),
  'says end before the last record': () => {
    let polls = 0
    return { reader: (reader) => ({ poll: (output) => (++polls % 15 === 0 ? 'end' : reader.poll(output)) }) }
  },
  'never wakes its task': () => ({ readerContext: () => ({ wake: () => undefined }) }),
  'takes away what it reads': () => {
    const taken = new Set<number>()
    return {
      reader: (reader) => ({
        poll: (output) =>
          reader.poll({
            ...output,
            emit: (value, timestamp, split) => {
              if (!taken.has(value)) output.emit(value, timestamp, split)
              taken.add(value)
            },
          }),
      }),
    }
  },
  'emits for a split that is not its own': () => ({
    reader: (reader) => ({
      poll: (output) => reader.poll({ ...output, emit: (value, timestamp) => output.emit(value, timestamp, 'other') }),
    }),
  }),
  'ignores its restored splits': () => ({ reader: () => ({ addSplits: () => undefined }) }),
  'forgets in the enumerator what was assigned': () => ({
    enumerator: (enumerator) => {
      const first = enumerator.snapshot(0 as never)
      return { snapshot: () => first }
    },
  }),
  'drops splits that are given back': () => ({ enumerator: () => ({ addSplitsBack: () => undefined }) }),
  'does not listen to who owns what': () => ({ enumerator: () => ({ reconcile: () => undefined }) }),
  'never says that there are no more splits': () => ({
    enumeratorContext: () => ({ signalNoMoreSplits: () => undefined }),
  }),
}

/** Its splits are handed out one by one, on request. */
async function claimsOfFiles(splitsWait?: boolean): Promise<readonly Claim[]> {
  const environment = manualEnvironment()
  const files = new MemoryFiles()
  const rows = Array.from({ length: 12 }, (_, n) => ({ n }))
  const paths = rows.map(({ n }) => `${n}.jsonl`)
  for (const { n } of rows) await files.writeNew(paths[n]!, new TextEncoder().encode(`{"n":${n}}\n`))
  return sourceClaims({
    name: 'files',
    createSource: () => {
      const source = jsonLineFiles({ paths, schema: z.object({ n: z.int() }) })
      const createEnumerator: typeof source.createEnumerator = (context, restored) =>
        spoilt(source.createEnumerator(context, restored), splitsWait === undefined ? {} : { splitsWait })
      return { ...source, createEnumerator }
    },
    environment,
    files,
    settle: () => environment.clock.advanceSettled(50),
    expected: rows,
    keyOf: ({ n }) => String(n),
  })
}

describe('the source suite', () => {
  it('sees one that says that no split waits while some do', async () => {
    expect(await failing(await claimsOfFiles())).toEqual([])
    expect(await seenBy(await claimsOfFiles(false))).toBe(true)
  })

  it('lets a right source pass', async () => {
    expect(await failing(claimsOfSource({}))).toEqual([])
  })

  it.each(Object.keys(wrongSources))('sees one that %s', async (wrong) => {
    expect(await seenBy(claimsOfSource(wrongSources[wrong]!()))).toBe(true)
  })
})

// ---- sinks ----

/** Each claim has a ledger of its own; a wrong sink is one over a wrong system, or with wrong writers or committers. */
type MakeSink = (ledger: MemoryLedger) => Sink<LedgerEntry>

function caseOf(make: MakeSink): SinkCase<LedgerEntry> {
  const ledger = new MemoryLedger()
  let refuses = false
  // Private fields: a plain wrapper of calls, that may refuse them all.
  const gated = spoilt(ledger, {
    append: async (name, entries) => {
      if (refuses) throw new Error('refused')
      return ledger.append(name, entries)
    },
  })
  return {
    name: 'sink',
    createSink: () => make(gated),
    environment: manualEnvironment(),
    files: new MemoryFiles(),
    record: (n) => ({ split: 0, n, magic: LEDGER_MAGIC }),
    keyOf: ({ n }) => String(n),
    visible: async () => ledger.entries,
    refuse: () => {
      refuses = true
    },
  }
}

const overSystem =
  (change: (ledger: MemoryLedger) => Partial<LedgerSystem>): MakeSink =>
  (ledger) =>
    ledgerSink(spoilt<LedgerSystem>(ledger, change(ledger)))

const withCommitter =
  (change: (committer: Committer, ledger: MemoryLedger) => Partial<Committer>): MakeSink =>
  (ledger) => {
    const sink = ledgerSink(ledger)
    return {
      ...sink,
      createCommitter: (context) => {
        const committer = sink.createCommitter!(context)
        return spoilt(committer, change(committer, ledger))
      },
    }
  }

const withWriter =
  (change: (writer: SinkWriter<LedgerEntry>, ledger: MemoryLedger) => Partial<SinkWriter<LedgerEntry>>): MakeSink =>
  (ledger) => {
    const sink = ledgerSink(ledger)
    return {
      ...sink,
      createWriter: (context) => {
        const writer = sink.createWriter(context)
        return spoilt(writer, change(writer, ledger))
      },
    }
  }

const wrongSinks: Readonly<Record<string, MakeSink>> = {
  'commits at the barrier': overSystem((ledger) => ({
    preCommit: async (name) => {
      await ledger.preCommit(name)
      await ledger.commit(name)
    },
  })),
  'commits twice when asked twice': (() => {
    const doubled: MakeSink = (ledger) => {
      const bare = ledgerSink(ledger)
      return {
        ...bare,
        createCommitter: (context) => {
          const committer = bare.createCommitter!(context)
          return spoilt(committer, {
            commit: async (committables) => {
              for (const { transaction } of committables) {
                const before = ledger.entries.length
                await ledger.commit(transaction)
                if (ledger.entries.length > before) continue
                const again = `${transaction} again ${before}`
                await ledger.append(again, [{ split: 0, n: 0, magic: LEDGER_MAGIC }])
                await ledger.preCommit(again)
                await ledger.commit(again)
              }
            },
          })
        },
      }
    }
    return doubled
  })(),
  'takes an unknown transaction for a committed one': withCommitter((committer) => ({
    commit: async (committables) => {
      for (const committable of committables) await committer.commit([committable]).catch(() => undefined)
    },
  })),
  'commits only the first of what it is given': withCommitter((committer) => ({
    commit: (committables) => committer.commit(committables.slice(0, 1)),
  })),
  'lists nothing': withCommitter(() => ({ list: async () => [] })),
  'lists what is committed already': withCommitter((committer) => {
    const names = new Set<string>()
    return {
      commit: async (committables) => {
        await committer.commit(committables)
        for (const { transaction } of committables) names.add(transaction)
      },
      list: async () => [...(await committer.list()), ...names],
    }
  }),
  'lists the transactions of everybody': withCommitter((_, ledger) => ({ list: () => ledger.list() })),
  'aborts nothing': withCommitter(() => ({ abort: async () => undefined })),
  'refuses to abort twice': withCommitter((committer, ledger) => ({
    abort: async (transactions) => {
      const known = new Set(await ledger.list())
      for (const name of transactions) if (!known.has(name)) throw new Error(`no ${name}`)
      await committer.abort(transactions)
    },
  })),
  'commits for its own job alone': (ledger) => {
    const sink = ledgerSink(ledger)
    return {
      ...sink,
      createCommitter: (context) => {
        const committer = sink.createCommitter!(context)
        return spoilt(committer, {
          commit: (committables) =>
            committer.commit(committables.filter(({ transaction }) => transaction.startsWith(`${context.job}/`))),
        })
      },
    }
  },
  'names transactions by subtask and checkpoint, not by attempt': (ledger) => {
    const sink = ledgerSink(ledger)
    return {
      ...sink,
      createWriter: (context) =>
        sink.createWriter({ ...context, task: { ...context.task, attempt: { ...context.task.attempt, number: 1 } } }),
    }
  },
  'names its first transaction by no checkpoint': (ledger) => {
    const sink = ledgerSink(ledger)
    return {
      ...sink,
      createWriter: (context) => sink.createWriter({ ...context, newestKnownCheckpoint: checkpointId(0) }),
    }
  },
  'cuts its transaction some time after the barrier': withWriter((writer) => ({
    prepareCommit: async (checkpoint, end) => {
      await Promise.resolve()
      return writer.prepareCommit(checkpoint, end)
    },
  })),
  'acknowledges before its records are written': withWriter((writer) => {
    let kept: LedgerEntry[] = []
    return {
      write: (value) => void kept.push(value),
      prepareCommit: async (checkpoint, end) => {
        const prepared = await writer.prepareCommit(checkpoint, end)
        for (const value of kept) writer.write(value, 0)
        kept = []
        return prepared
      },
    }
  }),
  'commits what is left when it is closed': withWriter((writer, ledger) => ({
    close: async () => {
      for (const { transaction } of await writer.prepareCommit(99 as never, true)) await ledger.commit(transaction)
      await writer.close()
    },
  })),
  'prepares a transaction without records': withWriter((writer) => ({
    prepareCommit: async (checkpoint, end) => {
      const prepared = await writer.prepareCommit(checkpoint, end)
      return prepared.length > 0 ? prepared : [{ transaction: `empty ${checkpoint}`, payload: null }]
    },
  })),
  'keeps a failed write to itself': (ledger) => {
    const sink = ledgerSink(
      spoilt<LedgerSystem>(ledger, {
        append: (...args) => ledger.append(...args).catch(() => undefined),
        preCommit: (name) => ledger.preCommit(name).catch(() => undefined),
      }),
    )
    return sink
  },
}

describe('the suite of sinks with transactions', () => {
  it('lets a right sink pass', async () => {
    expect(await failing(sinkClaims('sink', () => caseOf(ledgerSink)))).toEqual([])
  })

  it.each(Object.keys(wrongSinks))('sees one that %s', async (wrong) => {
    expect(await seenBy(sinkClaims('sink', () => caseOf(wrongSinks[wrong]!)))).toBe(true)
  })
})

const withPlainWriter =
  (change: (writer: SinkWriter<LedgerEntry>) => Partial<SinkWriter<LedgerEntry>>): MakeSink =>
  (ledger) => {
    const sink = plainLedgerSink(ledger)
    return {
      ...sink,
      createWriter: (context) => {
        const writer = sink.createWriter(context)
        return spoilt(writer, change(writer))
      },
    }
  }

const wrongPlainSinks: Readonly<Record<string, MakeSink>> = {
  'acknowledges before its records are written': withPlainWriter((writer) => {
    let kept: LedgerEntry[] = []
    return {
      write: (value) => void kept.push(value),
      prepareCommit: async (checkpoint, end) => {
        const prepared = await writer.prepareCommit(checkpoint, end)
        for (const value of kept) writer.write(value, 0)
        kept = []
        return prepared
      },
    }
  }),
  'writes each record twice': withPlainWriter((writer) => ({
    write: (value) => {
      writer.write(value, 0)
      writer.write(value, 0)
    },
  })),
  'keeps a failed write to itself': (ledger) =>
    plainLedgerSink(
      spoilt<LedgerSystem>(ledger, {
        append: (...args) => ledger.append(...args).catch(() => undefined),
        preCommit: (name) => ledger.preCommit(name).catch(() => undefined),
        commit: (name) => ledger.commit(name).catch(() => undefined),
      }),
    ),
  'prepares transactions': (ledger) => {
    const { createCommitter: _, ...sink } = ledgerSink(ledger)
    return sink
  },
}

describe('the suite of sinks without transactions', () => {
  it('lets a right sink pass', async () => {
    expect(await failing(plainSinkClaims('sink', () => caseOf(plainLedgerSink)))).toEqual([])
  })

  it.each(Object.keys(wrongPlainSinks))('sees one that %s', async (wrong) => {
    expect(await seenBy(plainSinkClaims('sink', () => caseOf(wrongPlainSinks[wrong]!)))).toBe(true)
  })
})
