#!/usr/bin/env node
// The operator's process: the only file of it that reads arguments, environment and files. A command of its own, `node operator/main.ts`, since
// nothing of the runtime knows the operator.

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { errorsOf, MillraceError } from '../runtime/base/errors.ts'
import { jsonLog } from '../runtime/distributed/platform/json-log.ts'
import { realEnvironment } from '../runtime/local/platform/real-environment.ts'
import { operatorErrors } from './errors.ts'
import { ApiClient } from './kubernetes/client.ts'
import type { ApiConnection } from './kubernetes/client.ts'
import { connectApi } from './kubernetes/platform/https-connection.ts'
import { Operator } from './operator.ts'
import { configOf, help, parseCommand } from './operator-command.ts'
import type { RunCommand } from './operator-command.ts'
import { dialCoordinators } from './platform/coordinator-connection.ts'
import { serveHealth, serveWebhook } from './platform/http-servers.ts'
import type { WebhookServer } from './platform/http-servers.ts'
import { uninstall } from './uninstall.ts'

const fail = errorsOf(operatorErrors)

const fieldManager = 'millrace-operator'
const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'
/** A shutdown that takes longer is cut off: nothing is lost by it but the lease's time. */
const shutdownMs = 8_000
/** The main thread has not come to its turns for so long: let the kubelet restart it. */
const stallMs = 60_000

try {
  const command = parseCommand(process.argv.slice(2))
  if (command.kind === 'help') process.stdout.write(help)
  else if (command.kind === 'version') process.stdout.write(`${version()}\n`)
  else if (command.kind === 'uninstall') await leave(command)
  else await run(command)
} catch (error) {
  process.stderr.write(`${error instanceof MillraceError ? error.message : String((error as Error).stack ?? error)}\n`)
  process.exit(error instanceof MillraceError && !error.retry ? 2 : 1)
}

async function run(command: RunCommand): Promise<void> {
  const config = configOf(readFile(command.config), command)
  const pod = process.env['POD_NAME'] ?? hostname()
  const log = jsonLog({
    level: config.logLevel,
    fields: { component: 'operator', pod },
    write: (line) => void process.stderr.write(line),
  })
  const { clock, random } = realEnvironment({ log })
  const client = new ApiClient({ connection: await connect(command), fieldManager })
  let webhook: WebhookServer | undefined
  const operator: Operator = new Operator({
    client,
    dial: dialCoordinators(command.coordinators),
    clock,
    random,
    randomBytes: (count) => randomBytes(count),
    config,
    namespace: command.namespace ?? ownNamespace(command),
    holder: `${pod}-${randomBytes(4).toString('hex')}`,
    version: version(),
    log,
    onCertificate: ({ certificate: cert, certificateKey: key }) => {
      if (webhook !== undefined) return webhook.use({ cert, key })
      const review = (body: unknown): object | undefined => operator.review(body)
      const failed = (error: unknown): void => log('error', 'an admission review failed', { error: String(error) })
      return void serveWebhook(config.webhook!.port, { cert, key }, review, failed).then(
        (serving) => {
          webhook = serving
        },
        (error: unknown) => log('error', 'the webhook cannot be served', { error: String(error) }),
      )
    },
  })
  let turnMs = clock.nowMs()
  const turns = setInterval(() => {
    turnMs = clock.nowMs()
  }, 1_000)
  const health = await serveHealth(config.port, {
    '/livez': () =>
      clock.nowMs() - turnMs < stallMs ? { status: 200, body: 'live\n' } : { status: 503, body: 'stalled\n' },
    '/readyz': () => operator.readiness(),
    '/metrics': async () => ({
      status: 200,
      body: await operator.metrics.text(),
      contentType: operator.metrics.contentType,
    }),
  })
  let ending = false
  const end = (signal: string): void => {
    if (ending) process.exit(1)
    ending = true
    log('info', 'the operator ends; jobs run on', { signal })
    setTimeout(() => process.exit(1), shutdownMs).unref()
    void operator
      .stop()
      .then(() => Promise.all([health.close(), webhook?.close()]))
      .then(
        () => {
          clearInterval(turns)
          process.exit(0)
        },
        () => process.exit(1),
      )
  }
  process.on('SIGTERM', () => end('SIGTERM'))
  process.on('SIGINT', () => end('SIGINT'))
  log('info', 'the operator starts', {
    version: version(),
    namespaces: config.namespaces.length === 0 ? 'all' : config.namespaces,
    port: health.port,
  })
  await operator.start()
}

async function leave(command: RunCommand): Promise<void> {
  const config = configOf(readFile(command.config), command)
  const log = jsonLog({ level: config.logLevel, fields: {}, write: (line) => void process.stderr.write(line) })
  const deployment = process.env['OPERATOR_DEPLOYMENT']
  await uninstall({
    client: new ApiClient({ connection: await connect(command), fieldManager }),
    clock: realEnvironment({ log }).clock,
    namespace: command.namespace ?? ownNamespace(command),
    deployment: deployment === '' ? undefined : deployment,
    namespaces: config.namespaces,
    log,
  })
  process.exit(0)
}

async function connect({ kubeconfig, server, serviceAccount }: RunCommand): Promise<ApiConnection> {
  const host = process.env['KUBERNETES_SERVICE_HOST']
  const port = process.env['KUBERNETES_SERVICE_PORT'] ?? '443'
  const at = host?.includes(':') === true ? `[${host}]` : host
  const account =
    kubeconfig === undefined && at !== undefined
      ? { folder: serviceAccount ?? accountFolder, server: `https://${at}:${port}` }
      : undefined
  const connection = connectApi({ account, kubeconfig, server })
  try {
    await connection.ready
  } catch (error) {
    throw fail('MR-P03', `${(error as Error).message}.`, error)
  }
  return connection
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw fail('MR-P02', `${path} cannot be read: ${(error as Error).message}.`, error)
  }
}

function ownNamespace({ serviceAccount }: RunCommand): string {
  const named = process.env['OPERATOR_NAMESPACE']
  if (named !== undefined && named !== '') return named
  try {
    return readFileSync(join(serviceAccount ?? accountFolder, 'namespace'), 'utf8').trim()
  } catch (error) {
    throw fail('MR-P01', '--namespace is missing, and there is no service account that says it.', error)
  }
}

/** From the package's own description, which lies beside the source and beside the compiled form at different depths. */
function version(): string {
  const description = new URL(
    import.meta.url.endsWith('.ts') ? '../package.json' : '../../package.json',
    import.meta.url,
  )
  return (JSON.parse(readFileSync(description, 'utf8')) as { readonly version: string }).version
}
