// Who we are towards the server. Files are read anew for each attempt, so that rotated credentials are found.

import { credsAuthenticator } from '@nats-io/transport-node'
import type { NodeConnectionOptions } from '@nats-io/transport-node'
import type { NatsConfig } from '../../distributed/contract.ts'
import type { SecretFile } from '../../storage/contract.ts'
import { networkError } from '../errors.ts'

/** The content of a file. May reject; its error is shown, so it names the file and nothing of its content. */
export type ReadSecret = (file: SecretFile) => string | Promise<string>

const addressForm = /^(?:(?:nats|tls):\/\/)?(\[[\da-f:.]+\]|[^\s:/[\]]+)(?::\d+)?\/?$/i

/** Throws MR-W37 for a configuration that contradicts itself. Reads nothing. */
export function checkNatsConfig(config: NatsConfig): void {
  const refuse = (detail: string): never => {
    throw networkError('MR-W37', detail)
  }
  if (config.servers.length === 0) refuse('nats.servers is empty.')
  config.servers.forEach((server, index) => {
    // The address itself is not shown: it holds a secret.
    if (server.includes('@')) refuse(`nats.servers[${index}] holds credentials; name files for them instead.`)
    if (!addressForm.test(server))
      refuse(`nats.servers[${index}] is ${server}; it must be like nats://host:4222 or tls://host:4222.`)
  })
  if ((config.userFile === undefined) !== (config.passwordFile === undefined))
    refuse('Of nats.userFile and nats.passwordFile there is only one.')
  const ways = [config.credentialsFile, config.userFile, config.tokenFile].filter((file) => file !== undefined)
  if (ways.length > 1) refuse('Only one of nats.credentialsFile, nats.userFile and nats.tokenFile is possible.')
  const { tls } = config
  if ((tls?.certFile === undefined) !== (tls?.keyFile === undefined))
    refuse('Of nats.tls.certFile and nats.tls.keyFile there is only one.')
}

/** What is the same for all servers. */
export type Authentication = Pick<NodeConnectionOptions, 'authenticator' | 'user' | 'pass' | 'token' | 'tls'>

/** Rejects with MR-W38 for a file that cannot be read or is not what it should be. */
export async function readAuthentication(config: NatsConfig, read: ReadSecret): Promise<Authentication> {
  const { credentialsFile, userFile, passwordFile, tokenFile } = config
  const options: Authentication = { ...(await readTls(config, read)) }
  if (credentialsFile !== undefined) options.authenticator = await readCredentials(credentialsFile, read)
  if (userFile !== undefined && passwordFile !== undefined) {
    options.user = await readLine(userFile, read)
    options.pass = await readLine(passwordFile, read)
  }
  if (tokenFile !== undefined) options.token = await readLine(tokenFile, read)
  return options
}

/** For one server: the client tells Node the name that its certificate must have, but no IP address. */
export function authenticationFor(server: string, authentication: Authentication): Authentication {
  const host = addressForm.exec(server)?.[1] ?? ''
  const isAddress = /^[\d.]+$|^\[/.test(host)
  if (!isAddress || authentication.tls === undefined || authentication.tls === null) return authentication
  // The client hands its TLS options on to Node; their types do not say so.
  const identity: object = { host: host.replace(/^\[|\]$/g, '') }
  return { ...authentication, tls: { ...authentication.tls, ...identity } }
}

async function readTls(config: NatsConfig, read: ReadSecret): Promise<Authentication> {
  const { tls, servers } = config
  if (tls === undefined && !servers.some((server) => /^tls:/i.test(server))) return {}
  const files = { ca: tls?.caFile, cert: tls?.certFile, key: tls?.keyFile }
  const contents: { ca?: string; cert?: string; key?: string } = {}
  for (const part of ['ca', 'cert', 'key'] as const) {
    const file = files[part]
    if (file !== undefined) contents[part] = await readFile(file, read)
  }
  return { tls: contents }
}

async function readCredentials(file: SecretFile, read: ReadSecret): Promise<NodeConnectionOptions['authenticator']> {
  // The client takes the seed only if a line follows its last one, which whoever copies or trims the file may have taken off.
  const authenticator = credsAuthenticator(new TextEncoder().encode(`${await readFile(file, read)}\n`))
  try {
    // Where it throws during an attempt, the client gives up for good.
    authenticator('a nonce')
  } catch {
    throw networkError('MR-W38', `${file} is no credentials file (.creds) with a user's JWT and seed.`)
  }
  return authenticator
}

async function readLine(file: SecretFile, read: ReadSecret): Promise<string> {
  const line = (await readFile(file, read)).trim()
  if (line === '') throw networkError('MR-W38', `${file} is empty.`)
  return line
}

async function readFile(file: SecretFile, read: ReadSecret): Promise<string> {
  try {
    return await read(file)
  } catch (error) {
    throw networkError('MR-W38', `${file} cannot be read: ${messageOf(error)}.`, error)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
