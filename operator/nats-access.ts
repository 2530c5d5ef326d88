// Who signs the credentials of jobs for NATS. For the chart's own server the leader makes all keys once and writes what the server includes in
// its config; for somebody else's server a signing key stands in a Secret; with shared credentials nobody signs.

import { errorsOf, MillraceError } from '../runtime/base/errors.ts'
import { operatorErrors } from './errors.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import {
  isAccountSeed,
  natsKeysData,
  natsServerConfig,
  newNatsKeys,
  readNatsKeys,
  signerOf,
} from './nats-credentials.ts'
import type { NatsKeys, NatsSigner } from './nats-credentials.ts'
import type { OperatorConfig } from './resources/operator-config.ts'

const fail = errorsOf(operatorErrors)

/** Key of the config Secret: the file that the server's config includes. */
export const natsConfigKey = 'auth.conf'

export interface NatsAccessOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'apply'>
  /** The operator's own. */
  readonly namespace: string
  readonly access: OperatorConfig['natsAccess']
  readonly wallMs: () => number
}

export class NatsAccess {
  readonly #options: NatsAccessOptions
  #signer: NatsSigner | undefined
  #problem: string | undefined

  constructor(options: NatsAccessOptions) {
    this.#options = options
  }

  /** undefined: nobody signs, or the keys are not known yet. */
  get signer(): NatsSigner | undefined {
    return this.#signer
  }

  /** Why the keys are not known; undefined: they are, or it was not tried yet. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The leader's: makes what is missing, once. Rejects with MR-P07 where a Secret is there and is not what it should be. */
  async ensure(): Promise<void> {
    try {
      await this.#ensure()
      this.#problem = undefined
    } catch (error) {
      this.#problem = error instanceof MillraceError ? error.description : String(error)
      throw error
    }
  }

  async #ensure(): Promise<void> {
    const { access } = this.#options
    switch (access.kind) {
      case 'own server': {
        const keys = await this.#keys(access.keysSecret)
        await this.#writeConfig(access.configSecret, natsServerConfig(keys))
        this.#signer = signerOf(keys)
        return
      }
      case 'signing key': {
        const secret = await this.#read(access.secret)
        const signingSeed = textOf(secret, 'seed').trim()
        if (!isAccountSeed(signingSeed))
          throw fail(
            'MR-P07',
            `Secret ${this.#options.namespace}/${access.secret} has no account's signing key (SA…) in its key seed.`,
          )
        this.#signer = { signingSeed, account: access.account }
        return
      }
      case 'shared':
        return
      default:
        access satisfies never
    }
  }

  async #keys(name: string): Promise<NatsKeys> {
    const { client, namespace, wallMs } = this.#options
    const found = await this.#read(name)
    if (found !== undefined) return this.#parsed(name, found)
    const keys = newNatsKeys(wallMs())
    try {
      await client.create(types.secret, secretObject(namespace, name, natsKeysData(keys)))
      return keys
    } catch (error) {
      if (!(error instanceof KubeError && error.exists)) throw error
      // An operator that led before has made them meanwhile.
      const there = await this.#read(name)
      if (there === undefined) throw error
      return this.#parsed(name, there)
    }
  }

  /** Keys that cannot be read are never made anew: every job's credentials rest on them. */
  #parsed(name: string, secret: KubeObject): NatsKeys {
    const keys = readNatsKeys(secret['data'] as Readonly<Record<string, string>> | undefined)
    if (keys === undefined)
      throw fail('MR-P07', `Secret ${this.#options.namespace}/${name} does not hold the keys that the operator made.`)
    return keys
  }

  async #writeConfig(name: string, text: string): Promise<void> {
    const { client, namespace } = this.#options
    const found = await this.#read(name)
    if (found !== undefined && textOf(found, natsConfigKey) === text) return
    const data = { [natsConfigKey]: Buffer.from(text).toString('base64') }
    await client.apply(types.secret, secretObject(namespace, name, data), { force: true })
  }

  #read(name: string): Promise<KubeObject | undefined> {
    return this.#options.client.get(types.secret, { namespace: this.#options.namespace, name })
  }
}

function textOf(secret: KubeObject | undefined, key: string): string {
  const data = secret?.['data'] as Readonly<Record<string, string>> | undefined
  return Buffer.from(data?.[key] ?? '', 'base64').toString()
}

export function secretObject(namespace: string, name: string, data: Readonly<Record<string, string>>): KubeObject {
  return {
    apiVersion: types.secret.apiVersion,
    kind: types.secret.kind,
    metadata: {
      namespace,
      name,
      labels: { 'app.kubernetes.io/name': 'millrace', 'app.kubernetes.io/managed-by': 'millrace' },
    },
    type: 'Opaque',
    data,
  }
}
