// The network of one job's processes: a proxy on each way from a process to NATS, to S3 and, of workers, to the coordinator, so that
// any two of them can be cut off from each other.

import type { ProcessConfig } from '../../../runtime/distributed/contract.ts'
import { parseAddress } from '../../../runtime/distributed/process-config.ts'
import type { NatsServer } from './nats-server.ts'
import { startProxy } from './proxy.ts'
import type { TcpProxy } from './proxy.ts'
import type { S3Server } from './s3-server.ts'

export type Way = 'nats' | 's3' | 'coordinator'

export class JobNetwork {
  readonly #servers: { readonly nats: NatsServer; readonly s3: S3Server }
  readonly #proxies = new Map<string, ReadonlyMap<Way, TcpProxy>>()

  constructor(servers: { readonly nats: NatsServer; readonly s3: S3Server }) {
    this.#servers = servers
  }

  /** From a process, `coordinator` or a worker's name, to a server. */
  way(process: string, to: Way): TcpProxy {
    const proxy = this.#proxies.get(process)?.get(to)
    if (proxy === undefined) throw new Error(`${process} has no way to ${to}`)
    return proxy
  }

  ways(to: Way): readonly TcpProxy[] {
    return [...this.#proxies.values()].flatMap((ways) => ways.get(to) ?? [])
  }

  /** All that workers open from now on goes there. */
  coordinatorAt(port: number): void {
    for (const proxy of this.ways('coordinator')) proxy.target = { port }
  }

  /** The config of one process, at its proxies. */
  async configOf(process: string, config: ProcessConfig): Promise<ProcessConfig> {
    const { port: coordinatorPort } = parseAddress(config.coordinator.workersAddress)!
    if (!this.#proxies.has(process)) {
      const ways = new Map<Way, TcpProxy>([
        ['nats', await startProxy({ port: this.#servers.nats.port })],
        ['s3', await startProxy({ port: this.#servers.s3.process.port })],
      ])
      if (process !== 'coordinator') ways.set('coordinator', await startProxy({ port: coordinatorPort }))
      this.#proxies.set(process, ways)
    }
    const { s3 } = config.storage
    const own: ProcessConfig = {
      ...config,
      nats: { ...config.nats, servers: [`nats://127.0.0.1:${this.way(process, 'nats').port}`] },
      storage: {
        ...config.storage,
        ...(s3 !== undefined && { s3: { ...s3, endpoint: `http://127.0.0.1:${this.way(process, 's3').port}` } }),
      },
    }
    if (process === 'coordinator') return own
    const workersAddress = `127.0.0.1:${this.way(process, 'coordinator').port}`
    return { ...own, coordinator: { ...own.coordinator, workersAddress } }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#proxies.values()].flatMap((ways) => [...ways.values()].map((proxy) => proxy.close())))
  }
}
