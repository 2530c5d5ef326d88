// Credentials of jobs as the operator gives them, for as many jobs as a test names; also some that expire, which the operator never gives.

import { nkeys } from '@nats-io/transport-node'
import { jobNatsCredentials, natsServerConfig, newNatsKeys, signerOf } from '../../../operator/nats-credentials.ts'

export interface JobCredentials {
  /** For the server's configuration file. */
  readonly config: string
  /** The content of a .creds file for the job `name`. `lifetimeSeconds`: until it expires. */
  credentials(name: string, lifetimeSeconds?: number): string
}

export function jobCredentials(): JobCredentials {
  const keys = newNatsKeys(Date.now())
  return {
    config: natsServerConfig(keys),
    credentials: (name, lifetimeSeconds) => {
      const endless = jobNatsCredentials(signerOf(keys), name, Date.now())
      return lifetimeSeconds === undefined ? endless : expiring(endless, keys.signingSeed, lifetimeSeconds)
    },
  }
}

/** The same with an end, signed again. */
function expiring(credentials: string, signingSeed: string, lifetimeSeconds: number): string {
  const [token, header, body] = /^([\w-]+)\.([\w-]+)\.[\w-]+$/m.exec(credentials) as unknown as [string, string, string]
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as { readonly iat: number }
  const limited = JSON.stringify({ ...claims, exp: claims.iat + lifetimeSeconds })
  const signed = `${header}.${Buffer.from(limited).toString('base64url')}`
  const signature = nkeys.fromSeed(new TextEncoder().encode(signingSeed)).sign(new TextEncoder().encode(signed))
  return credentials.replace(token, `${signed}.${Buffer.from(signature).toString('base64url')}`)
}
