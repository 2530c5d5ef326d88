// A process that runs one local job, says on its standard output what happens (a JSON object a line), and takes orders on its input.

import { createInterface } from 'node:readline'
import { MillraceError } from '../../../runtime/base/errors.ts'
import { parseFailpoints } from '../../../runtime/local/failpoint-plan.ts'
import { prepareLocalJob } from '../../../runtime/local/run-job.ts'
import type { LocalJob } from '../../../runtime/local/run-job.ts'
import type { DriverEvent, DriverOptions, DriverOrder } from './driver-contract.ts'

const { jobFile, folder, name, args, settings, failpoints, parallelism } = JSON.parse(process.argv[2]!) as DriverOptions

const say = (event: DriverEvent): void => void process.stdout.write(`${JSON.stringify(event)}\n`)

function attemptsOf({ coordinator }: LocalJob): Record<string, number> {
  return Object.fromEntries([...coordinator.execution!.tasks.values()].map(({ key, attempt }) => [key, attempt.number]))
}

function takeOrders({ coordinator, slots }: LocalJob): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const order = JSON.parse(line) as DriverOrder
    if (order.type === 'suspend') return coordinator.suspend()
    const workers = [...slots.workers].filter(([slot]) => order.slot === undefined || slot.startsWith(`${order.slot}#`))
    const chosen = workers[Math.floor(Math.random() * workers.length)]
    if (chosen === undefined) return say({ type: 'terminated', slot: undefined })
    void chosen[1].terminate().then(() => say({ type: 'terminated', slot: chosen[0] }))
  })
}

try {
  const job = await prepareLocalJob({
    jobFile,
    folder,
    name,
    args,
    parallelism,
    parallelismDefault: 1,
    settings: settings ?? {},
    failpoints: parseFailpoints(failpoints ?? ''),
    log: (level, message, fields) => level !== 'debug' && say({ type: 'log', level, message, fields }),
    observer: {
      began: (head) => say({ type: 'began', job: head.job, incarnation: head.incarnation, start: head.start }),
      running: () => say({ type: 'running', attempts: attemptsOf(job) }),
      checkpointCompleted: ({ manifest }) => say({ type: 'checkpoint', id: manifest.id }),
      restarting: ({ message, tasks }) => say({ type: 'restarting', message, tasks }),
    },
  })
  takeOrders(job)
  const outcome = await job.coordinator.run()
  const reports = [...(job.coordinator.execution?.tasks.values() ?? [])].map(({ key, report }) => [
    key,
    report?.metrics ?? {},
  ])
  say({
    type: 'outcome',
    kind: outcome.kind,
    reason: 'reason' in outcome ? outcome.reason : undefined,
    metrics: Object.fromEntries(reports),
  })
} catch (error) {
  say({ type: 'error', code: error instanceof MillraceError ? error.code : undefined, message: String(error) })
  process.exitCode = 1
} finally {
  process.stdin.destroy()
}
