// The counter, and a test that says when it crashes: it leaves marks at the ledger server (LedgerClient.mark), and each mark is one crash.
//
//   crash-record   the next record throws
//   crash-process  the next record kills the process, as kill -9 does

import { defineJob, z } from 'millrace'
import { counted, ledgerArgs, sinkOf } from './shape.ts'

const args = ledgerArgs.extend({
  /** How often the ledger server is asked for marks. */
  askMs: z.int().min(1).default(100),
})

export default defineJob({ args }, (env, options) => {
  const { url, book, checkpointMs, askMs } = options
  if (checkpointMs !== undefined) env.config.checkpointIntervalMs = checkpointMs
  let crash: 'record' | 'process' | undefined

  const take = async (mark: string): Promise<boolean> => {
    const response = await fetch(`${url}/marks/take?name=${mark}`, { method: 'POST' })
    const { taken } = (await response.json()) as { taken: boolean }
    return taken
  }
  const ask = async (): Promise<void> => {
    try {
      if (await take('crash-record')) crash = 'record'
      else if (await take('crash-process')) crash = 'process'
    } catch {
      // The ledger server is killed too, now and then.
    }
    setTimeout(() => void ask(), askMs).unref()
  }

  counted(env, options, {
    prefix: '',
    open: () => void ask(),
    each: () => {
      if (crash === 'process') process.kill(process.pid, 'SIGKILL')
      if (crash === 'record') throw new Error('crash on request')
    },
  })
    .sinkTo(sinkOf(options, book))
    .uid('ledger')
})
