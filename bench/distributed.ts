// The distributed job over a real NATS server and a real S3 server on this machine: what a kill costs, what NATS costs, what a checkpoint
// of a million keys takes. Needs what `npm run test:servers` needs.

import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readRestAddress } from '../runtime/local/platform/rest-file.ts'
import { DistributedJob, startServers } from '../tests/servers/support/distributed-job.ts'
import type { Servers } from '../tests/servers/support/distributed-job.ts'
import { startServer, until } from '../tests/servers/support/server-process.ts'
import type { ServerProcess } from '../tests/servers/support/server-process.ts'
import type { Figure } from './figure.ts'
import { median } from './measure/median.ts'
import type { MeasureOptions } from './measure/options.ts'
import { eachAsTheFirst } from './measure/restart-strategy.ts'

const rounds = 20
const exchange = fileURLToPath(new URL('./jobs/exchange.ts', import.meta.url))
const command = fileURLToPath(new URL('../runtime/cli/main.ts', import.meta.url))
/** What a clock tick of /proc is, per second. */
const ticksPerSecond = 100

type Emit = (figure: Figure) => void

export async function run(emit: Emit, options: MeasureOptions): Promise<void> {
  const servers = await startServers()
  const wants = (name: string): boolean => name.includes(options.only)
  try {
    if (wants('coordinator kill')) await coordinatorKill(servers, emit)
    if (wants('worker kill')) await workerKill(servers, emit)
    if (wants('throughput')) await throughput(servers, emit, options)
    if (wants('checkpoint')) await checkpoint(servers, emit, options)
  } finally {
    await servers.stop()
  }
}

/** Each round: the largest gap between arrivals of records never seen before, at a sink without transactions, from the kill on. */
async function gaps(
  job: DistributedJob,
  kill: (round: number) => Promise<void>,
): Promise<{ readonly medianMs: number; readonly worstMs: number }> {
  const { client } = job.servers.ledger
  const measured: number[] = []
  await job.running()
  for (let round = 0; round < rounds; round++) {
    await job.checkpoints(1)
    const killedMs = await client.nowMs()
    await kill(round)
    await job.running()
    await job.checkpoints(1)
    const { gap } = await client.report({ book: job.id, sinceMs: killedMs, atLeastOnce: true })
    if (gap === undefined) throw new Error('nothing came after the kill')
    measured.push(gap.toMs - gap.fromMs)
  }
  return { medianMs: median(measured), worstMs: Math.max(...measured) }
}

function plainLedger(servers: Servers, id: string, workers: number): Promise<DistributedJob> {
  const args = { splits: 4, keys: 100, ratePerSecond: 2_000, sink: 'plain', checkpointMs: 500 }
  return DistributedJob.start({ servers, id, workers, args, settings: { restartStrategy: eachAsTheFirst } })
}

async function coordinatorKill(servers: Servers, emit: Emit): Promise<void> {
  const job = await plainLedger(servers, 'bench-coordinator', 2)
  try {
    const { medianMs, worstMs } = await gaps(job, () => job.replaceCoordinator())
    const { restarts } = await job.status()
    const place = `coordinator kill -9, ${rounds} times, ${restarts} restarts`
    emit({ bench: 'distributed', case: place, metric: 'largest gap at the sink, median', value: medianMs, unit: 'ms' })
    emit({ bench: 'distributed', case: place, metric: 'largest gap at the sink, worst', value: worstMs, unit: 'ms' })
  } finally {
    await job.stop()
  }
}

async function workerKill(servers: Servers, emit: Emit): Promise<void> {
  for (const spares of [0, 1]) {
    const job = await plainLedger(servers, `bench-worker-${spares}`, 2 + spares)
    try {
      const { medianMs, worstMs } = await gaps(job, async (round) => job.replaceWorker(`worker-${round % 2}`))
      const room = spares === 0 ? 'restarted in place' : 'with a spare worker'
      const place = `worker kill -9, ${room}, ${rounds} times`
      emit({
        bench: 'distributed',
        case: place,
        metric: 'largest gap at the sink, median',
        value: medianMs,
        unit: 'ms',
      })
      emit({ bench: 'distributed', case: place, metric: 'largest gap at the sink, worst', value: worstMs, unit: 'ms' })
    } finally {
      await job.stop()
    }
  }
}

interface Rate {
  readonly perSecond: number
  /** Of all processes of the job, the NATS server too. */
  readonly cpuNsPerRecord: number
}

async function throughput(servers: Servers, emit: Emit, options: MeasureOptions): Promise<void> {
  const one = await localRate(options)
  const two = await distributedRate(servers, options)
  const place = 'keyed exchange, parallelism 2, over NATS against one process'
  const compared = { peer: 'one process', peerValue: one.perSecond, ratio: two.perSecond / one.perSecond }
  emit({
    bench: 'distributed',
    case: place,
    metric: 'throughput',
    value: two.perSecond,
    unit: 'records/s',
    ...compared,
  })
  const cpu = { peer: 'one process', peerValue: one.cpuNsPerRecord, ratio: one.cpuNsPerRecord / two.cpuNsPerRecord }
  emit({ bench: 'distributed', case: place, metric: 'cpu per record', value: two.cpuNsPerRecord, unit: 'ns', ...cpu })
}

async function distributedRate(servers: Servers, options: MeasureOptions): Promise<Rate> {
  const job = await DistributedJob.start({ servers, id: 'bench-exchange', file: exchange, args: {} })
  try {
    await job.running()
    const processes = [servers.nats.process, job.coordinator, ...job.workers.values()]
    const counted = async (): Promise<number> => countedIn((await job.request('GET', '/v1/subtasks')).body)
    return await rateOf(processes, counted, options)
  } finally {
    await job.stop()
  }
}

async function localRate(options: MeasureOptions): Promise<Rate> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  let running: ServerProcess | undefined
  try {
    const store = join(folder, '.millrace', 'exchange')
    running = await startServer({
      name: 'millrace run',
      command: process.execPath,
      args: () => [command, 'run', exchange, '--parallelism', '2', '--folder', folder],
      ports: [],
      ready: async () => (await readRestAddress(store)) !== undefined,
    })
    const { address, token } = (await readRestAddress(store))!
    const counted = async (): Promise<number> => {
      const answer = await fetch(`${address}/v1/subtasks`, { headers: { authorization: `Bearer ${token}` } })
      return countedIn(await answer.json())
    }
    await until('records', async () => (await counted()) > 0, 60_000)
    return await rateOf([running], counted, options)
  } finally {
    await running?.kill()
    await rm(folder, { recursive: true, force: true })
  }
}

function countedIn(body: unknown): number {
  const { subtasks } = body as {
    readonly subtasks: readonly { readonly vertex: string; readonly recordsIn: number | null }[]
  }
  return subtasks.filter(({ vertex }) => vertex === 'counter').reduce((sum, { recordsIn }) => sum + (recordsIn ?? 0), 0)
}

async function rateOf(
  processes: readonly ServerProcess[],
  counted: () => Promise<number>,
  { warmSeconds, measureSeconds }: MeasureOptions,
): Promise<Rate> {
  const look = async () => ({
    records: await counted(),
    atMs: performance.now(),
    cpu: processes.reduce((sum, { pid }) => sum + cpuSeconds(pid!), 0),
  })
  await sleep(warmSeconds * 1_000)
  const before = await look()
  await sleep(measureSeconds * 1_000)
  const after = await look()
  const records = after.records - before.records
  return {
    perSecond: records / ((after.atMs - before.atMs) / 1_000),
    cpuNsPerRecord: ((after.cpu - before.cpu) * 1e9) / records,
  }
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Into S3, against the same into a folder. */
async function checkpoint(servers: Servers, emit: Emit, { keys }: MeasureOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  try {
    const s3 = await checkpointMs(servers, 'bench-s3', keys, undefined)
    const disk = await checkpointMs(servers, 'bench-folder', keys, `file://${folder}/job`)
    const place = `checkpoint of ${keys} keys of 100 B to S3, ${Math.round(s3.bytes / 1e6)} MB, parallelism 2`
    const compared = { peer: 'a folder', peerValue: disk.ms, ratio: disk.ms / s3.ms }
    emit({ bench: 'distributed', case: place, metric: 'duration', value: s3.ms, unit: 'ms', ...compared })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function checkpointMs(
  servers: Servers,
  id: string,
  keys: number,
  folder: string | undefined,
): Promise<{ readonly ms: number; readonly bytes: number }> {
  const args = { splits: 4, keys, stateBytes: 100, sink: 'plain', ratePerSecond: 60_000, checkpointMs: 3_600_000 }
  const storage = folder === undefined ? {} : { storage: { checkpoints: folder } }
  const job = await DistributedJob.start({ servers, id, args, ...storage })
  try {
    await job.running()
    await job.until(
      'all keys',
      async () => {
        const { body } = await job.request('GET', '/v1/subtasks')
        const { subtasks } = body as { readonly subtasks: readonly { readonly stateEntries: number | null }[] }
        return subtasks.reduce((sum, { stateEntries }) => sum + (stateEntries ?? 0), 0) >= keys * 0.999
      },
      300_000,
    )
    const measured: { readonly durationMs: number; readonly bytes: number }[] = []
    for (let round = 0; round < 3; round++) {
      const before = measured.length
      const start = (await job.status()).start as number
      await job.request('POST', '/v1/checkpoints', { start, request: `bench-${round}` })
      await job.until('a checkpoint', async () => {
        const { body } = await job.request('GET', '/v1/checkpoints')
        const { completed } = body as { readonly completed: readonly { durationMs: number; bytes: number }[] }
        if (completed.length > before) measured.push(completed.at(-1)!)
        return completed.length > before
      })
    }
    const [middle] = measured.toSorted((left, right) => left.durationMs - right.durationMs).slice(1)
    return { ms: middle!.durationMs, bytes: middle!.bytes }
  } finally {
    await job.stop()
  }
}
