// Words that the commands on a job share, and which job they mean: one of this machine, or one behind an address.

import { commandError } from './errors.ts'
import { notEmpty, onlyWord, wholeNumber } from './words.ts'

export interface LocalTarget {
  readonly kind: 'local'
  /** An id, a name, a job file or a manifest. */
  readonly job: string
  readonly folder: string | undefined
}

export type RemoteTarget = (
  | {
      readonly kind: 'address'
      /** `https://host:port` */
      readonly address: string
      readonly tokenFile: string
      readonly caFile: string | undefined
    }
  /** The process config of the job. */
  | { readonly kind: 'config'; readonly file: string }
) & {
  /** How long its coordinator may be away. */
  readonly waitMs: number
}

export type ControlTarget = LocalTarget | RemoteTarget

export interface ControlWords {
  readonly target: ControlTarget
}

/** A pod that is started again elsewhere takes about so long. */
const waitUsualMs = 30_000

export const controlHelp = `  --folder DIR       the folder that the job was started in, if not this one

In place of <job>, one on a cluster:
  --address URL      of its coordinator's REST, https://host:port, with
  --token-file FILE  the owner's token, or the reader's for what changes nothing but takes savepoints and checkpoints
  --ca FILE          the CA of the coordinator's certificate, PEM
  --config FILE      or the process config, which names all of these, and the store, which is asked when the job has ended
  --wait MS          how many milliseconds its coordinator may be away, as when it is started again; default: ${waitUsualMs}`

/** How long an answer may take; taking a savepoint of much state takes its time. */
const timeoutUsualMs = 600_000

export const timeoutHelp = `  --timeout MS       how many milliseconds to wait for the answer; default: ${timeoutUsualMs}. What was asked for stands`

export const targetOptions = {
  folder: { type: 'string' },
  address: { type: 'string' },
  'token-file': { type: 'string' },
  ca: { type: 'string' },
  config: { type: 'string' },
  wait: { type: 'string' },
} as const
export const timeoutOption = { timeout: { type: 'string' } } as const

export interface TargetValues {
  readonly folder?: string | undefined
  readonly address?: string | undefined
  readonly 'token-file'?: string | undefined
  readonly ca?: string | undefined
  readonly config?: string | undefined
  readonly wait?: string | undefined
}

interface GivenWords {
  readonly command: string
  readonly positionals: readonly string[]
  readonly values: TargetValues
}

/** Throws MR-L10, MR-L11. */
export function controlWords(given: GivenWords): ControlWords {
  const remote = remoteTarget(given)
  if (remote !== undefined) return { target: remote }
  const { command, positionals, values } = given
  const job = onlyWord({ command, what: 'job', words: positionals })
  return { target: { kind: 'local', job, folder: notEmpty('folder', values.folder) } }
}

/** undefined: a job of this machine is meant. Throws MR-L10, MR-L11. */
export function remoteTarget({ command, positionals, values }: GivenWords): RemoteTarget | undefined {
  const { address, 'token-file': tokenFile, ca, config, wait } = values
  const refuse = (why: string): never => {
    throw commandError('MR-L10', `${command}: ${why}.`)
  }
  const names = Object.entries({ address, 'token-file': tokenFile, ca }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`],
  )
  if (config === undefined && names.length === 0) {
    if (wait !== undefined) refuse('--wait needs --address or --config: a job of this machine has no other process')
    return undefined
  }
  if (config !== undefined && names.length > 0) refuse(`--config names what ${names.join(' and ')} would`)
  const other = positionals[0] ?? (values.folder === undefined ? undefined : '--folder')
  if (other !== undefined) refuse(`${other} means a job of this machine, and ${names[0] ?? '--config'} another one`)
  const waitMs = wholeNumber('wait', wait, 'milliseconds') ?? waitUsualMs
  if (config !== undefined) return { kind: 'config', file: notEmpty('config', config)!, waitMs }
  if (address === undefined) refuse(`${names.join(' and ')} needs --address`)
  if (tokenFile === undefined) refuse('--address needs --token-file')
  return {
    kind: 'address',
    address: checkedAddress(address!),
    tokenFile: notEmpty('token-file', tokenFile)!,
    caFile: notEmpty('ca', ca),
    waitMs,
  }
}

/** Without a path. Throws MR-L11. */
function checkedAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain =
    url !== undefined && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '' && url.hash === ''
  // Its parts may be a secret, and this text ends in logs.
  if (url !== undefined && (url.username !== '' || url.password !== ''))
    throw commandError('MR-L11', '--address holds a user or a password; the token is taken from --token-file.')
  if (!isPlain) throw commandError('MR-L11', `--address is ${text}; it must be http://host:port or https://host:port.`)
  return url.origin
}

export function timeoutMsOf(timeout: string | undefined): number {
  return wholeNumber('timeout', timeout, 'milliseconds') ?? timeoutUsualMs
}
