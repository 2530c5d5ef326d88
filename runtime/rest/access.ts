// Who may do what: the owner's token (kubernetes.md rule 12: stop, cancel, rescale, close, a worker's loss), the reader's (the rest), and
// what needs none.

import { createHash, timingSafeEqual } from 'node:crypto'
import { restError } from './errors.ts'

export interface Tokens {
  readonly owner: string
  /** undefined: there is one token, and whoever has it owns the job. */
  readonly reader?: string | undefined
}

export type Access = 'open' | 'reader' | 'owner'

/** The StreamJob that says what the job is to be; its owner's token is the operator's. */
export interface KubernetesJob {
  readonly namespace: string
  readonly name: string
}

/** What an owner's path does, for whoever should use kubectl instead. */
export type OwnerAction = 'stop' | 'cancel' | 'rescale' | 'close' | 'lost'

export class AccessCheck {
  readonly #isOwner: (given: string) => boolean
  readonly #isReader: (given: string) => boolean

  constructor({ owner, reader }: Tokens) {
    this.#isOwner = sameAs(owner)
    this.#isReader = reader === undefined ? () => false : sameAs(reader)
  }

  /** What the header allows. `Authorization: Bearer <token>`; undefined: nothing. */
  granted(authorization: string | undefined): 'owner' | 'reader' | undefined {
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? ''
    // Both, always: the time taken tells nothing.
    const isOwner = this.#isOwner(given)
    const isReader = this.#isReader(given)
    if (isOwner) return 'owner'
    return isReader ? 'reader' : undefined
  }
}

/** MR-H07. `what`: `POST /v1/stop`. */
export function ownerNeeded(what: string, action: OwnerAction, kubernetes: KubernetesJob | undefined): Error {
  const command = kubernetes === undefined ? undefined : kubectl(action, kubernetes)
  return restError(
    'MR-H07',
    command === undefined
      ? `${what}.`
      : `${what}. On Kubernetes the operator has that token, and this does it: ${command}.`,
  )
}

function kubectl(action: OwnerAction, { namespace, name }: KubernetesJob): string | undefined {
  const job = `streamjob/${name} -n ${namespace}`
  switch (action) {
    case 'rescale':
      return `kubectl scale ${job} --replicas=<parallelism>`
    case 'stop':
    case 'close':
      return `kubectl patch ${job} --type=merge -p '{"spec":{"state":"suspended"}}'`
    case 'cancel':
      return `kubectl delete ${job}`
    case 'lost':
      return undefined
    default:
      return action satisfies never
  }
}

/** In constant time: of hashes, which are as long as each other. */
function sameAs(token: string): (given: string) => boolean {
  const hash = (text: string): Uint8Array => createHash('sha256').update(text).digest()
  const expected = hash(token)
  return (given) => timingSafeEqual(hash(given), expected)
}
