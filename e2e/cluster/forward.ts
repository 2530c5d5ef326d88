// A way to a port in the cluster by kubectl port-forward, which ends whenever its pod does: it is begun anew, at the same port here.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { freePorts, until } from '../../tests/servers/support/server-process.ts'
import type { Forward, ForwardOptions } from './contract.ts'

const readyDeadlineMs = 60_000
const againAfterMs = 200

/** Resolves once kubectl listens. Close it: it holds a process. */
export async function forward(kubectl: string, kubeconfig: string, options: ForwardOptions): Promise<Forward> {
  const { namespace, target, port: inner } = options
  const [port] = (await freePorts(1)) as [number]
  const args = ['--kubeconfig', kubeconfig, '--namespace', namespace, 'port-forward', target, `${port}:${inner}`]
  let child: ChildProcess | undefined
  let closed = false
  let ready = false
  let words = ''
  const begin = (): void => {
    const next = spawn(kubectl, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    child = next
    next.stdout.on('data', (chunk: Buffer) => {
      if (String(chunk).startsWith('Forwarding from')) ready = true
    })
    next.stderr.on('data', (chunk: Buffer) => (words = (words + String(chunk)).slice(-2000)))
    next.once('error', (error) => (words += error.message))
    next.once('close', () => {
      child = undefined
      if (!closed) setTimeout(() => closed || begin(), againAfterMs)
    })
  }
  const close = async (): Promise<void> => {
    closed = true
    const ending = child
    if (ending === undefined) return
    ending.kill('SIGKILL')
    await new Promise((resolve) => ending.once('close', resolve))
  }
  begin()
  try {
    await until(`a way to port ${inner} of ${target} in ${namespace}`, () => ready, readyDeadlineMs)
  } catch (error) {
    await close()
    throw new Error(`${(error as Error).message}; kubectl said:\n${words}`, { cause: error })
  }
  return { port, url: `http://127.0.0.1:${port}`, close }
}
