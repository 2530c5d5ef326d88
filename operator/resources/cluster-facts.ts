// What a rendering needs to know besides the spec: how pods get their credentials for NATS, and what the chart was told.

import type { EffectiveSpec, NatsSharing } from '../contract.ts'
import type { OperatorConfig } from './operator-config.ts'

/** Whose credentials for NATS a job's pods have. */
export type NatsCredentials =
  /** Made by the operator for this job alone, in its access Secret. */
  | { readonly kind: 'of the job' }
  /** A Secret of the job's namespace; its key is nats.creds. */
  | { readonly kind: 'secret'; readonly name: string }
  | { readonly kind: 'none' }

export interface ClusterFacts {
  readonly natsCredentials: NatsCredentials
  readonly networkPolicy: boolean
}

/** Of a job with this spec, the chart's defaults in it. */
export function clusterFactsOf({ nats }: EffectiveSpec, config: OperatorConfig): ClusterFacts {
  const { networkPolicy, natsAccess, defaults } = config
  return {
    natsCredentials: credentialsOf(nats, natsAccess.kind === 'shared' ? undefined : defaults.nats?.url),
    networkPolicy,
  }
}

/** Whether others have a job's credentials for NATS, or it has none. Of a Secret that its own spec names only its user can know. */
export function natsSharing(spec: EffectiveSpec, config: OperatorConfig): NatsSharing {
  const { natsCredentials } = clusterFactsOf(spec, config)
  switch (natsCredentials.kind) {
    case 'of the job':
      return 'own'
    case 'none':
      return 'shared'
    case 'secret':
      return natsCredentials.name === config.defaults.nats?.credentialsSecret ? 'shared' : 'unknown'
    default:
      return natsCredentials satisfies never
  }
}

/** Credentials that the operator makes are for its own server and go to no other address. */
function credentialsOf(nats: EffectiveSpec['nats'], ownUrl: string | undefined): NatsCredentials {
  if (nats?.credentialsSecret !== undefined) return { kind: 'secret', name: nats.credentialsSecret }
  return nats !== undefined && nats.url === ownUrl ? { kind: 'of the job' } : { kind: 'none' }
}
