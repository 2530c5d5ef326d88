// A real S3 server with a bucket and credentials in files: versitygw over a temporary folder, or SeaweedFS where
// MILLRACE_S3_SERVER=seaweedfs says so (npm run test:nightly).

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import type { S3Config, StorageConfig } from '../../../runtime/storage/contract.ts'
import { goTool } from './go-tool.ts'
import { startServer } from './server-process.ts'
import type { ServerOptions, ServerProcess } from './server-process.ts'

export const versitygw = {
  name: 'versitygw',
  package: 'github.com/versity/versitygw/cmd/versitygw',
  version: 'v1.8.0',
} as const

/** 4.53: its releases of today are no versions to Go's modules, so that a commit is named. */
const seaweedfs = {
  name: 'weed',
  package: 'github.com/seaweedfs/seaweedfs/weed',
  module: 'github.com/seaweedfs/seaweedfs',
  version: 'v0.0.0-20261109003541-7506e5f91cd6',
} as const

const accessKeyId = 'millrace-tests'
const secretAccessKey = 'millrace-tests-secret'
const region = 'us-east-1'

export interface S3Server {
  readonly process: ServerProcess
  readonly endpoint: string
  /** Where the credentials' files lie, and what the server stores. */
  readonly folder: string
  /** storage.s3, at the server itself or at a proxy before it. */
  config(port?: number): S3Config
  /** A new bucket. */
  makeBucket(): Promise<string>
  /** A job's storage in a bucket, at the server itself or at a proxy before it. */
  storage(bucket: string, prefix: string, port?: number): StorageConfig
  stop(): Promise<void>
}

type Started = (folder: string, stored: string) => Promise<ServerOptions>

const servers: Readonly<Record<string, Started>> = { versitygw: versitygwOptions, seaweedfs: seaweedfsOptions }

/** Which one the tests take. */
export const s3ServerName = process.env['MILLRACE_S3_SERVER'] ?? 'versitygw'

/** Resolves once it answers. */
export async function startS3Server(): Promise<S3Server> {
  const optionsOf = servers[s3ServerName]
  if (optionsOf === undefined)
    throw new Error(`MILLRACE_S3_SERVER is ${s3ServerName}; there are ${Object.keys(servers).join(' and ')}`)
  const folder = await mkdtemp(join(tmpdir(), 'millrace-s3-'))
  const stored = join(folder, 'stored')
  await mkdir(stored)
  return openServer(folder, await optionsOf(folder, stored))
}

async function versitygwOptions(_folder: string, stored: string): Promise<ServerOptions> {
  return {
    name: 'versitygw',
    command: await goTool(versitygw),
    args: ([port]) => [
      '--port',
      `127.0.0.1:${port}`,
      '--keep-alive',
      '--quiet',
      '--health',
      '/health',
      'posix',
      stored,
    ],
    env: { ROOT_ACCESS_KEY_ID: accessKeyId, ROOT_SECRET_ACCESS_KEY: secretAccessKey },
    ready: async ({ port }) => (await fetch(`http://127.0.0.1:${port}/health`)).ok,
  }
}

/** Master, volume server, filer and S3 gateway in one process, each with a port for HTTP and one for gRPC. */
async function seaweedfsOptions(folder: string, stored: string): Promise<ServerOptions> {
  const identities = join(folder, 's3.json')
  const credentials = [{ accessKey: accessKeyId, secretKey: secretAccessKey }]
  await writeFile(identities, JSON.stringify({ identities: [{ name: 'tests', credentials, actions: ['Admin'] }] }))
  const parts = ['s3', 'master', 'volume', 'filer']
  return {
    name: 'SeaweedFS',
    command: await goTool(seaweedfs),
    portCount: 2 * parts.length,
    args: (ports) => [
      'server',
      `-dir=${stored}`,
      '-ip=127.0.0.1',
      '-s3',
      `-s3.config=${identities}`,
      '-s3.port.iceberg=0',
      '-s3.port.lance=0',
      '-s3.autoCreateBucket=false',
      // It would tell its makers of itself.
      '-master.telemetry=false',
      `-s3.localSocket=${join(folder, 's3.sock')}`,
      `-filer.localSocket=${join(folder, 'filer.sock')}`,
      ...parts.flatMap((part, index) => [
        `-${part}.port=${ports[2 * index]}`,
        `-${part}.port.grpc=${ports[2 * index + 1]}`,
      ]),
      // Many small buckets, of a volume each at least.
      '-volume.max=500',
      '-master.volumeSizeLimitMB=64',
      '-volume.preStopSeconds=0',
      // Its master elects itself anew after each kill: with the usual 10 s that takes half a minute, nearly all that a call may take.
      '-master.electionTimeout=1s',
    ],
    // It answers before it has a volume to write to.
    ready: async ({ port }) => {
      const client = clientAt(port)
      try {
        await client.send(new CreateBucketCommand({ Bucket: 'ready' })).catch(() => undefined)
        await client.send(new PutObjectCommand({ Bucket: 'ready', Key: 'ready', Body: 'ready' }))
        return true
      } finally {
        client.destroy()
      }
    },
    readyDeadlineMs: 120_000,
  }
}

const endpointAt = (port: number): string => `http://127.0.0.1:${port}`

function clientAt(port: number): S3Client {
  const credentials = { accessKeyId, secretAccessKey }
  return new S3Client({ endpoint: endpointAt(port), region, forcePathStyle: true, credentials, maxAttempts: 1 })
}

async function openServer(folder: string, options: ServerOptions): Promise<S3Server> {
  const files = {
    accessKeyIdFile: join(folder, 'access-key-id'),
    secretAccessKeyFile: join(folder, 'secret-access-key'),
  }
  await writeFile(files.accessKeyIdFile, `${accessKeyId}\n`)
  await writeFile(files.secretAccessKeyFile, `${secretAccessKey}\n`)
  const process = await startServer(options)
  const config = (port = process.port): S3Config => ({ endpoint: endpointAt(port), region, ...files })
  let buckets = 0
  return {
    process,
    folder,
    endpoint: endpointAt(process.port),
    config,
    storage: (bucket, prefix, port) => ({ checkpoints: `s3://${bucket}/${prefix}`, s3: config(port) }),
    makeBucket: async () => {
      const bucket = `tests-${++buckets}`
      const client = clientAt(process.port)
      await client.send(new CreateBucketCommand({ Bucket: bucket }))
      client.destroy()
      return bucket
    },
    stop: async () => {
      await process.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
