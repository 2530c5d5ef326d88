import { describe, expect, it } from 'vitest'
import { withPrepareCommit } from '../../tests/support/wrapped-sink.ts'
import { failpointNames } from '../base/failpoints.ts'
import { collected } from '../connectors/collection.ts'
import { ledgerSink, plainLedgerSink } from '../connectors/ledger.ts'
import { printSink } from '../connectors/print.ts'
import { sequence } from '../connectors/sequence.ts'
import type { SequenceRecord } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import { defineJob } from '../job/define-job.ts'
import type { OperatorStream, Stream } from '../job/stream.ts'
import { tumblingWindows } from '../operators/window-assigner.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { parseTransactionName } from '../storage/paths.ts'
import { countingJob, expectedTimers, perSplit, splits } from './test-counting-job.ts'
import type { CountingJob } from './test-counting-job.ts'
import { openMiniCluster } from './mini-cluster.ts'
import type { MiniCluster } from './mini-cluster.ts'

const total = splits * perSplit

function expectExact(counting: CountingJob): void {
  const report = counting.judge()
  expect(report, JSON.stringify(report)).toMatchObject({ exact: true, present: total })
  expect([...collected<string>(counting.timers)].toSorted()).toEqual(expectedTimers())
}

async function opened(counting: CountingJob, parallelism = 2): Promise<MiniCluster> {
  return openMiniCluster({ job: counting.job, parallelism })
}

describe('a mini cluster', () => {
  it('runs a whole job to its end with every record and timer exactly once', async () => {
    const counting = countingJob()
    const cluster = await opened(counting)
    await cluster.start()
    expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })
    expectExact(counting)
    expect(cluster).toMatchObject({ running: false, outcome: { kind: 'finished' }, restarts: [], slots: 0 })
    expect(cluster.checkpoints.length).toBeGreaterThan(3)
  })

  it('moves virtual time only as far as it is told', async () => {
    const cluster = await opened(countingJob())
    await cluster.start()
    const beforeMs = cluster.nowMs
    await cluster.advance(250)
    expect(cluster.nowMs - beforeMs).toBeGreaterThanOrEqual(250)
    expect(cluster.nowMs - beforeMs).toBeLessThan(253)
    cluster.close()
  })

  it('fails, without a restart, at a key selector that gives two keys for one record, and names its place', async () => {
    let calls = 0
    const job = defineJob((env) => {
      env
        .source(sequence({ splits: 2 }), { uid: 'endless' })
        .keyBy(({ n }) => `${n % 2}-${calls++ % 8}`)
        .reduce((_, record) => record)
        .uid('salted')
        .sinkTo(printSink())
    })
    const cluster = await openMiniCluster({ job, parallelism: 2 })
    await cluster.start()
    const outcome = await cluster.untilEnd()
    expect(outcome.kind).toBe('failed')
    expect(JSON.stringify(outcome)).toMatch(/MR-J68.* at .*mini-cluster\.test\.ts:\d+, before operator 'salted'/)
    expect(cluster.restarts).toEqual([])
    cluster.close()
  })

  const minutes = tumblingWindows({ sizeMs: 60_000 })
  const { key, salt } = { key: ({ n }: SequenceRecord) => `${n % 2}`, salt: () => `${calls++ % 8}` }
  let calls = 0
  type TwoStreams = (steady: Stream<SequenceRecord>, salted: Stream<SequenceRecord>) => OperatorStream<unknown>
  it.each<readonly [string, TwoStreams]>([
    [
      'connect',
      (steady, salted) =>
        steady
          .keyBy(key)
          .connect(salted.keyBy(salt))
          .process({ process: () => undefined, processSecond: () => undefined }),
    ],
    [
      'coGroup',
      (steady, salted) =>
        steady
          .coGroup(salted)
          .where(key)
          .equalTo(salt)
          .window(minutes)
          .apply(() => []),
    ],
    [
      'join',
      (steady, salted) =>
        steady
          .join(salted)
          .where(key)
          .equalTo(salt)
          .window(minutes)
          .apply(() => 0),
    ],
    [
      'intervalJoin',
      (steady, salted) =>
        steady
          .keyBy(key)
          .intervalJoin(salted.keyBy(salt))
          .between(0, 1)
          .process(() => undefined),
    ],
  ])('fails so at the key selector of the second input of %s', async (_, join) => {
    const job = defineJob((env) => {
      const source = (uid: string) => env.source(sequence({ splits: 2 }), { uid, watermarks: monotonic() })
      join(source('steady'), source('salted')).uid('joined').sinkTo(printSink())
    })
    const cluster = await openMiniCluster({ job, parallelism: 2 })
    await cluster.start()
    const outcome = await cluster.untilEnd()
    expect(JSON.stringify(outcome)).toMatch(/MR-J68.* at .*mini-cluster\.test\.ts:\d+, before operator 'joined'/)
    expect([outcome.kind, cluster.restarts]).toEqual(['failed', []])
    cluster.close()
  })

  it('lets time pass for a source that always has something, too', async () => {
    const job = defineJob((env) => {
      env
        .source(sequence({ splits: 2 }), { uid: 'endless' })
        .keyBy(({ n }) => n % 7)
        .reduce((_, record) => record)
        .uid('newest')
        .sinkTo(printSink())
    })
    const cluster = await openMiniCluster({ job, parallelism: 2, settings: { checkpointIntervalMs: undefined } })
    await cluster.start()
    await cluster.advance(20)
    expect(await cluster.checkpoint()).toBe(1)
    const savepoint = await cluster.stop()
    await cluster.start({ from: savepoint })
    expect(cluster.running).toBe(true)
    cluster.close()
    expect(cluster).toMatchObject({ running: false, slots: 0 })
  })

  it('does the same in two runs with the same calls', async () => {
    const run = async () => {
      const counting = countingJob()
      const cluster = await opened(counting)
      await cluster.start()
      await cluster.advance(333)
      cluster.killSlot(1)
      await cluster.advance(150)
      const savepoint = await cluster.rescale(3)
      await cluster.untilEnd()
      const { logLines, checkpoints, nowMs, restarts } = cluster
      // Jobs of one process have numbers, which may differ in length.
      const lengthOf = (bytes: Uint8Array) =>
        Buffer.from(bytes)
          .toString('latin1')
          .replaceAll(/tested\.\d+/g, 'tested').length
      const objects = [...savepoint.objects].map(([name, bytes]) => [name, lengthOf(bytes)])
      return { logLines, checkpoints, nowMs, restarts, objects, entries: [...counting.ledger.entries] }
    }
    const first = await run()
    expect(await run()).toEqual(first)
    expect(first.logLines.length).toBeGreaterThan(0)
    expect(first.entries).toHaveLength(total)
  })
})

describe('a killed slot', () => {
  it('leaves the next attempt of a sink a name for its transactions that no sweep takes for an older one', async () => {
    const prepared: string[] = []
    const counting = countingJob(undefined, (ledger) =>
      withPrepareCommit(ledgerSink(ledger), async (writer, ...barrier) => {
        const transactions = await writer.prepareCommit(...barrier)
        prepared.push(...transactions.map(({ transaction }) => transaction))
        return transactions
      }),
    )
    const cluster = await opened(counting)
    await cluster.start()
    await cluster.checkpoint()
    const completed = await cluster.checkpoint()
    prepared.length = 0
    cluster.killSlot()
    await cluster.untilEnd()
    const named = prepared.map((name) => parseTransactionName(name)!.checkpoint)
    expect(named.length).toBeGreaterThan(0)
    expect(Math.min(...named)).toBeGreaterThanOrEqual(completed)
    expectExact(counting)
  })

  it('between two checkpoints costs nothing and doubles nothing', async () => {
    const counting = countingJob()
    const cluster = await opened(counting)
    await cluster.start()
    await cluster.checkpoint()
    await cluster.advance(50)
    cluster.killSlot()
    await cluster.untilEnd()
    expectExact(counting)
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O11')])
  })
})

describe('a killed coordinator', () => {
  it('runs on in nothing, and the next one goes on where HEAD says', async () => {
    const counting = countingJob()
    const cluster = await opened(counting)
    await cluster.start()
    const id = await cluster.checkpoint()
    await cluster.advance(50)
    cluster.killCoordinator()
    const seen = [counting.ledger.entries.length, cluster.logLines.length]
    await cluster.advance(10_000)
    expect([counting.ledger.entries.length, cluster.logLines.length]).toEqual(seen)
    expect(cluster).toMatchObject({ running: false, outcome: undefined, slots: 0 })
    await cluster.restart()
    await cluster.untilEnd()
    expectExact(counting)
    expect(cluster.checkpoints.every((other, index, all) => index === 0 || other > all[index - 1]!)).toBe(true)
    expect(cluster.checkpoints).toContain(id)
  })
})

describe.each(['kill', 'fail'] as const)('a process that is to %s', (act) => {
  // Here slots die with their coordinator, so that there is nothing to adopt.
  it.each(failpointNames.filter((name) => !name.startsWith('coordinator.adopt.')))(
    'at %s does, and the job stays exact',
    async (name) => {
      const counting = countingJob()
      const cluster = await opened(counting)
      const arm = (options: { readonly skip: number }) =>
        act === 'kill' ? cluster.killAt(name, options) : cluster.failAt(name, options)
      await cluster.start()
      await cluster.checkpoint()
      // Nobody restores but after a restart.
      if (name === 'task.restore') cluster.killSlot()
      // A coordinator begins once, and a job ends once.
      const armed = arm({ skip: /^coordinator\.(begin|end)\./.test(name) ? 0 : 1 })
      if (name.startsWith('coordinator.begin.')) {
        cluster.killCoordinator()
        await expect(cluster.restart()).rejects.toThrow(/MR-K01/)
      }
      while (cluster.outcome === undefined) {
        await cluster.until(() => cluster.outcome !== undefined || !cluster.running)
        if (cluster.outcome === undefined) await cluster.restart()
      }
      expect(armed.happened).toBe(true)
      // Its next life finds an end in HEAD.
      if (name === 'coordinator.end.after')
        expect(cluster.outcome).toMatchObject({ kind: 'ended', head: { end: { kind: 'finished' } } })
      else expect(cluster.outcome).toEqual({ kind: 'finished' })
      expectExact(counting)
    },
  )
})

describe('another parallelism', () => {
  const pairs = [
    [1, 2],
    [2, 1],
    [2, 3],
    [3, 2],
    [3, 7],
    [7, 3],
  ] as const
  it.each(pairs)(
    'from %i to %i, with a killed slot before and behind, keeps counts, timers and splits',
    async (from, to) => {
      const counting = countingJob()
      const cluster = await opened(counting, from)
      await cluster.start()
      await cluster.advance(180)
      cluster.killSlot(from - 1)
      await cluster.until(() => cluster.restarts.length === 1)
      await cluster.advance(150)
      await cluster.rescale(to)
      expect(cluster.slots).toBe(to)
      await cluster.advance(150)
      cluster.killSlot(to - 1)
      expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })
      expect(cluster.restarts).toHaveLength(2)
      expectExact(counting)
    },
  )
})

describe('a savepoint', () => {
  it('to stop with begins the job in another cluster, which goes on exactly, at another parallelism', async () => {
    const counting = countingJob()
    const first = await opened(counting, 2)
    await first.start()
    await first.advance(300)
    const savepoint = await first.stop()
    expect(first.outcome).toMatchObject({ kind: 'stopped' })
    first.close()
    const second = await opened(counting, 3)
    await second.start({ from: savepoint })
    expect(counting.ledger.entries.length).toBeLessThan(total)
    await second.untilEnd()
    expectExact(counting)
  })

  it('outlives a kill of the cluster that began from it before its first checkpoint', async () => {
    const counting = countingJob()
    const first = await opened(counting)
    await first.start()
    await first.advance(300)
    const second = await opened(counting)
    await second.start({ from: await first.stop() })
    second.killCoordinator()
    await second.restart()
    await second.untilEnd()
    expectExact(counting)
  })

  it('taken while the job runs on commits nothing', async () => {
    const counting = countingJob()
    const cluster = await openMiniCluster({
      job: counting.job,
      parallelism: 2,
      settings: { checkpointIntervalMs: undefined },
    })
    await cluster.start()
    await cluster.advance(200)
    expect((await cluster.savepoint()).objects.has('_metadata')).toBe(true)
    expect(counting.ledger.entries).toEqual([])
    expect(cluster.checkpoints).toEqual([])
    await cluster.untilEnd()
    expectExact(counting)
  })

  it('to drain with fires the timers of all that was read, and the job is finished', async () => {
    const counting = countingJob()
    const cluster = await opened(counting)
    await cluster.start()
    await cluster.advance(300)
    const savepoint = await cluster.stop({ drain: true })
    expect(savepoint.drained).toBe(true)
    const read = counting.ledger.entries
    expect(read.length).toBeGreaterThan(20)
    expect(read.length).toBeLessThan(total)
    const timers = new Set(read.map(({ key, n }) => `${key} at ${n * 1_000 + 10_000}`))
    expect([...collected<string>(counting.timers)].toSorted()).toEqual([...timers].toSorted())
    await expect(cluster.start()).rejects.toThrow(/MR-K02.*has ended as stopped/)
    const other = await opened(counting)
    await expect(other.start({ from: savepoint })).rejects.toThrow(/drain/)
  })
})

describe('the ends of a job', () => {
  it('a suspended one goes on exactly', async () => {
    const counting = countingJob()
    const cluster = await opened(counting)
    await cluster.start()
    await cluster.advance(300)
    await cluster.suspend()
    expect(cluster.outcome).toEqual({ kind: 'suspended' })
    await cluster.restart()
    await cluster.untilEnd()
    expectExact(counting)
  })

  it('a cancelled one is over', async () => {
    const cluster = await opened(countingJob())
    await cluster.start()
    await cluster.cancel()
    expect(cluster.outcome).toEqual({ kind: 'cancelled' })
    await expect(cluster.start()).rejects.toThrow(/MR-K02.*has ended as cancelled/)
  })

  it('a failed one says why', async () => {
    const counting = countingJob(({ n }) => {
      if (n === 40) throw new Error('bad record')
    })
    const cluster = await opened(counting)
    await cluster.start()
    expect(await cluster.untilEnd()).toMatchObject({ kind: 'failed', reason: expect.stringContaining('bad record') })
    expect(cluster.restarts).toHaveLength(5)
  })
})

describe('what a mini cluster says', () => {
  it('of a condition that is not met: what the job is at and what a snapshot waits for', async () => {
    const cluster = await opened(countingJob())
    await cluster.start()
    await expect(cluster.until(() => false, { withinMs: 50 })).rejects.toThrow(
      /MR-K01.*within 50 ms. The job runs.*running: .*numbers\/0.*counts\/1.*No snapshot is pending/s,
    )
    cluster.killCoordinator()
    await expect(cluster.until(() => false)).rejects.toThrow(/MR-K01.*coordinator was killed; restart\(\)/s)
    await expect(cluster.checkpoint()).rejects.toThrow(/MR-K02.*checkpoint\(\): .*killed/)
  })

  it('of two calls at once, a slot that is not there, and an unknown uid: what is wrong', async () => {
    const cluster = await opened(countingJob())
    expect(() => cluster.killSlot()).toThrow(/MR-K02.*not started/)
    await cluster.start()
    expect(() => cluster.killSlot(2)).toThrow(/MR-K02.*killSlot\(2\): 2 slots live/)
    expect(() => cluster.metrics('nobody')).toThrow(/MR-K02.*'nobody'/)
    const advancing = cluster.advance(10)
    await expect(cluster.advance(10)).rejects.toThrow(/MR-K02.*Two of its calls/)
    await advancing
  })

  it('of a checkpoint that fails: its reason, and the job runs on', async () => {
    const counting = countingJob()
    const cluster = await openMiniCluster({ job: counting.job, settings: { checkpointIntervalMs: undefined } })
    await cluster.start()
    await cluster.advance(100)
    const failure = cluster.failAt('coordinator.manifest.before')
    await expect(cluster.checkpoint()).rejects.toThrow(/MR-K03.*planned at coordinator.manifest.before/)
    expect(failure.happened).toBe(true)
    await cluster.untilEnd()
    expectExact(counting)
  })

  it('of metrics: those of each subtask', async () => {
    const cluster = await opened(countingJob())
    await cluster.start()
    expect(cluster.metrics('counts')).toEqual([])
    await cluster.untilEnd()
    const read = cluster.metrics('counts').map((figures) => figures['records_in_total'] ?? 0)
    expect(read).toHaveLength(2)
    expect(read[0]! + read[1]!).toBe(total)
  })
})

describe('the judge of these tests', () => {
  it('sees what a killed slot doubles behind a sink without transactions', async () => {
    const counting = countingJob(undefined, plainLedgerSink)
    const cluster = await opened(counting)
    await cluster.start()
    await cluster.checkpoint()
    cluster.failAt('coordinator.swap.before')
    await cluster.until(() => cluster.restarts.length > 0 || !cluster.running)
    if (!cluster.running) await cluster.restart()
    await cluster.advance(50)
    cluster.killSlot()
    await cluster.untilEnd()
    const report = counting.judge()
    expect(report.lost).toBe(0)
    expect(report.duplicate).toBeGreaterThan(0)
  })
})

describe('a job file', () => {
  it('runs by its path, with arguments and files of the test', async () => {
    const files = new MemoryFiles()
    await files.makeDirectory('in')
    await files.writeNew('in/words.jsonl', new TextEncoder().encode('{"word":"to"}\n{"word":"be"}\n{"word":"to"}\n'))
    const cluster = await openMiniCluster({
      job: new URL('../../tests/whole/jobs/words-job.ts', import.meta.url),
      args: { input: 'in/words.jsonl' },
      files,
      name: 'words',
    })
    await cluster.start()
    expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })
    const folder = `out/${cluster.jobId}`
    const names = (await files.list(folder)).filter((name) => name !== '.pending')
    const texts = await Promise.all(names.map((name) => files.readFile(`${folder}/${name}`)))
    const lines = texts.flatMap((bytes) => new TextDecoder().decode(bytes).trim().split('\n'))
    expect(lines.toSorted()).toEqual(['{"word":"be","count":1}', '{"word":"to","count":1}', '{"word":"to","count":2}'])
  })

  it('that does not fit its arguments or is none is refused', async () => {
    const job = new URL('../../tests/whole/jobs/words-job.ts', import.meta.url)
    const cluster = await openMiniCluster({ job, args: { input: 7 } })
    await expect(cluster.start()).rejects.toThrow(/MR-J01/)
    await expect(openMiniCluster({ job: new URL('errors.ts', import.meta.url) })).rejects.toThrow(/MR-J02/)
  })
})

describe('real time', () => {
  it('runs the same job by the clock', async () => {
    const counting = countingJob()
    const cluster = await openMiniCluster({ job: counting.job, parallelism: 2, time: 'real' })
    await cluster.start()
    await cluster.checkpoint()
    cluster.killSlot()
    await cluster.untilEnd()
    expectExact(counting)
    expect(cluster.restarts).toHaveLength(1)
  })
})
