// What a coordinator's and a worker's process are told, and the parts they are put together from.

import type { JobId, SlotId, Start } from '../base/ids.ts'
import type { SecretFile, StorageConfig } from '../storage/contract.ts'
import type { FrameTransport } from '../network/contract.ts'

/** Version of the process config; a file of another is refused. Raised for a field that a runtime must understand; others it may ignore. */
export const PROCESS_CONFIG_VERSION = 1

/**
 * One file, JSON or YAML, the same for the coordinator and all workers of a job; the operator renders it, a person may write it. Secrets stand
 * in files that it names. Checked by process-config.ts.
 */
export interface ProcessConfig {
  readonly version: typeof PROCESS_CONFIG_VERSION
  readonly job: {
    /** The job's uid: part of every subject, never used again. */
    readonly id: JobId
    readonly name: string
    /** Which start of the job this is; rises. */
    readonly start: Start
    /** The job module, absolute. */
    readonly file: string
    readonly args?: unknown
    /** Wins over the job's config, as do maxParallelism and settings. */
    readonly parallelism?: number
    readonly maxParallelism?: number
    /** As JobSettings, by name. */
    readonly settings?: Readonly<Record<string, unknown>>
    readonly restore?: {
      /** A savepoint's or checkpoint's folder: s3://bucket/key or file:///path. */
      readonly from?: string
      /** Begin from nothing; older checkpoints are no restore points of this start. */
      readonly empty?: boolean
      /** The job has begun before: where it has no HEAD nothing begins. */
      readonly goesOn?: boolean
      readonly allowNonRestoredState?: boolean
      readonly allowDrained?: boolean
    }
  }
  readonly storage: StorageConfig
  readonly nats: NatsConfig
  readonly coordinator: {
    /** Where workers and commands find it: host:port of the direct connection and of REST. */
    readonly workersAddress: string
    readonly restAddress: string
    /** Where it listens; default: all of the address's port. */
    readonly listenHost?: string
    /** Certificate and key, PEM; absent: no TLS, for loopback only. */
    readonly tls?: { readonly certFile: SecretFile; readonly keyFile: SecretFile; readonly caFile: SecretFile }
  }
  readonly tokens: {
    /** Workers show it to the coordinator. */
    readonly workerFile: SecretFile
    /** stop, cancel, rescale, close, and everything else. */
    readonly ownerFile: SecretFile
    /** Everything else. */
    readonly readerFile: SecretFile
  }
  /** The StreamJob that an operator runs it for, which is changed by kubectl; absent: nobody but who has the owner's token changes the job. */
  readonly kubernetes?: { readonly namespace: string; readonly name: string }
  readonly worker?: { readonly slots?: number; readonly graceMs?: number }
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error'
}

export interface NatsConfig {
  readonly servers: readonly string[]
  /** A .creds file (user JWT and seed). */
  readonly credentialsFile?: SecretFile
  readonly userFile?: SecretFile
  readonly passwordFile?: SecretFile
  readonly tokenFile?: SecretFile
  readonly tls?: { readonly caFile?: SecretFile; readonly certFile?: SecretFile; readonly keyFile?: SecretFile }
  /** Default: `_INBOX_<job token>`, which is what a job's credentials allow. */
  readonly inboxPrefix?: string
}

/** One NATS connection of a thread (network/nats/connect.ts). Reconnects for ever. */
export interface NatsLink {
  readonly transport: FrameTransport
  /** The server's limit, bytes. */
  readonly maxPayload: number
  /** Datagrams of up to 64 MiB, fragmented below the server's limit; received on `own`, sent to `peer`. Values are packed by msgpackr. */
  datagrams(subjects: { readonly own: string; readonly peer: string }): {
    send(message: unknown): void
    onMessage(callback: (message: unknown) => void): void
    close(): void
  }
  readonly connected: boolean
  /** Round trip to the server; rejects when it is away. */
  ping(): Promise<void>
  /** Everything subscribed so far is known to the server. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** What REST shows of the processes of a job. */
export interface WorkersView {
  /** How many slots the graph needs, and how many registered workers offer. */
  readonly slotsNeeded: number
  readonly slotsOffered: number
  readonly workers: readonly {
    readonly name: string
    readonly address: string
    readonly slots: number
    readonly running: readonly SlotId[]
    readonly state: 'registered' | 'leaving' | 'lost'
    readonly sinceMs: number
  }[]
  /** The word of somebody outside (the operator) that a worker's process is gone. false: no such worker. */
  reportLost(worker: string, reason: string): boolean
}
