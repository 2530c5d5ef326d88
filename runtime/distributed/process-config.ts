// Reads the config of a coordinator's or worker's process: with the path of each field that is wrong, and never with the value of one that may
// be a secret. An operator drives runtimes of the version before too, and may say more than they know: unknown fields are named and ignored, as
// they are by every version from this one on. What has to be understood raises PROCESS_CONFIG_VERSION, and is refused by those that do not.

import { isAbsolute } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { jobId, start } from '../base/ids.ts'
import { MillraceError } from '../base/errors.ts'
import { SLOTS_MAX } from '../control/worker-wire.ts'
import { defaultConfig, settingsOf } from '../job/settings.ts'
import type { JobSettings } from '../job/contract.ts'
import { checkNatsConfig } from '../network/nats/authentication.ts'
import { parseStorageAddress } from '../storage/paths.ts'
import { savepointsAddress } from '../storage/savepoint-place.ts'
import { checkS3Settings } from '../storage/s3/s3-settings.ts'
import type { FileSystem, SecretFile } from '../storage/contract.ts'
import { PROCESS_CONFIG_VERSION } from './contract.ts'
import type { ProcessConfig } from './contract.ts'
import { distributedError } from './errors.ts'

/** Told at most once, in a sentence, of all fields that are not known. */
export type OnUnknown = (message: string) => void

/** Throws MR-D30 or MR-D31 with all that is wrong, MR-W37, MR-S39 or MR-J08 for what those layers refuse. */
export async function loadProcessConfig(
  path: string,
  files: Pick<FileSystem, 'readFile'>,
  onUnknown?: OnUnknown,
): Promise<ProcessConfig> {
  return parseProcessConfig(await textOf(path, files), path, onUnknown)
}

/** JSON is YAML. `place` names the text in errors. */
export function parseProcessConfig(text: string, place: string, onUnknown?: OnUnknown): ProcessConfig {
  const given = parsed(text, place)
  const version = z.looseObject({ version: z.unknown() }).safeParse(given)
  if (version.success && version.data.version !== undefined && version.data.version !== PROCESS_CONFIG_VERSION)
    throw wrong(place, [`version is not ${PROCESS_CONFIG_VERSION}, which this millrace reads`])
  const unknown = withoutUnknown(given)
  const result = schema.safeParse(given)
  if (!result.success) throw wrong(place, result.error.issues.flatMap(said))
  const config = result.data as ProcessConfig
  parseStorageAddress(config.storage.checkpoints)
  savepointsAddress(config.storage)
  checkS3Settings(config.storage.s3 ?? {})
  checkNatsConfig(config.nats)
  jobSettingsOf(config)
  if (unknown.length > 0)
    onUnknown?.(
      `${place} has fields that this millrace does not know, and goes on without them: ${unknown.join('; ')}.`,
    )
  return config
}

/** Takes them out of what was given, and gives their paths. */
function withoutUnknown(given: unknown): string[] {
  const { error } = schema.safeParse(given)
  return (error?.issues ?? []).flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return []
    const object = issue.path.reduce((outer, name) => (outer as never)[name], given) as Record<string, unknown>
    for (const name of issue.keys) delete object[name]
    return issue.keys.map((name) => `${[...issue.path, name].join('.')}${hint(name)}`)
  })
}

/** Overrides of the job's settings. Records are frozen for the author at the desk; here only where config says so. Throws MR-J08. */
export function jobSettingsOf({ job }: Pick<ProcessConfig, 'job'>): Partial<JobSettings> {
  const given = Object.entries(job.settings ?? {}).map(([name, value]) => [name, plainSetting(name, value)] as const)
  const settings: Partial<JobSettings> = { freezeRecords: false, ...Object.fromEntries(given) }
  settingsOf(defaultConfig(), settings)
  return settings
}

/** JSON has neither Infinity nor undefined. */
function plainSetting(name: string, value: unknown): unknown {
  if (name === 'tolerableFailures' && value === 'unlimited') return Number.POSITIVE_INFINITY
  return value === null && name === 'checkpointIntervalMs' ? undefined : value
}

/** The content of a file that the config names, without the white space at its ends. Throws MR-D32, which shows nothing of it. */
export async function readSecret(what: string, file: SecretFile, files: Pick<FileSystem, 'readFile'>): Promise<string> {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await files.readFile(file)).trim()
  } catch (error) {
    throw distributedError('MR-D32', `${what} is ${file}: ${(error as Error).message}.`, error)
  }
  if (text === '') throw distributedError('MR-D32', `${what} is ${file}, which is empty.`)
  return text
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Of `host:port`; `[…]:port` for an IPv6 address. undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.%]+)\]|([^[\]:/@\s]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < 1 || port > 65_535) return undefined
  return { host: (match[1] ?? match[2])!, port }
}

/** Addresses of this machine only: what goes there crosses no network. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** What is refused here may be a secret that somebody wrote down: it is not shown. */
const secretFile = z
  .string()
  .refine((path) => isAbsolute(path) && !/\s/.test(path), 'must be the absolute path of a file that holds the secret')
const text = z.string().min(1)
const wholeNumber = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)
const address = z.string().refine((value) => parseAddress(value) !== undefined, 'must be host:port')
const absolutePath = z.string().refine((path) => isAbsolute(path), 'must be an absolute path')
const settingNames = Object.keys(defaultConfig()).filter((name) => name !== 'parallelism' && name !== 'maxParallelism')

const schema = z.strictObject({
  version: z.literal(PROCESS_CONFIG_VERSION),
  job: z.strictObject({
    id: text
      .max(200)
      .regex(/^[\x21-\x7e]+$/, 'must be visible characters without spaces')
      .transform(jobId),
    name: text.max(253),
    start: wholeNumber.transform(start),
    file: absolutePath,
    args: z.unknown().optional(),
    parallelism: wholeNumber.optional(),
    maxParallelism: wholeNumber.max(32_768).optional(),
    settings: z
      .record(z.string(), z.unknown())
      .superRefine((settings, context) => {
        for (const name of Object.keys(settings)) {
          if (settingNames.includes(name)) continue
          if (!Object.hasOwn(defaultConfig(), name))
            context.addIssue({ code: 'unrecognized_keys', keys: [name], input: settings })
          else context.addIssue({ code: 'custom', path: [name], message: 'has its place in job' })
        }
      })
      .optional(),
    restore: z
      .strictObject({
        from: z
          .string()
          .regex(/^(s3:\/\/[^/]+\/.|file:\/\/\/.)/, 'must be s3://bucket/key or file:///path')
          .optional(),
        empty: z.boolean().optional(),
        goesOn: z.boolean().optional(),
        allowNonRestoredState: z.boolean().optional(),
        allowDrained: z.boolean().optional(),
      })
      .refine(({ from, empty }) => from === undefined || empty !== true, 'from and empty exclude each other')
      .optional(),
  }),
  storage: z.strictObject({
    checkpoints: text,
    savepoints: text.optional(),
    s3: z
      .strictObject({
        endpoint: text.optional(),
        region: text.optional(),
        forcePathStyle: z.boolean().optional(),
        accessKeyIdFile: secretFile.optional(),
        secretAccessKeyFile: secretFile.optional(),
        sessionTokenFile: secretFile.optional(),
      })
      .optional(),
  }),
  nats: z.strictObject({
    servers: z.array(text).min(1),
    credentialsFile: secretFile.optional(),
    userFile: secretFile.optional(),
    passwordFile: secretFile.optional(),
    tokenFile: secretFile.optional(),
    tls: z
      .strictObject({ caFile: secretFile.optional(), certFile: secretFile.optional(), keyFile: secretFile.optional() })
      .optional(),
    inboxPrefix: text.optional(),
  }),
  coordinator: z
    .strictObject({
      workersAddress: address,
      restAddress: address,
      listenHost: text.optional(),
      tls: z.strictObject({ certFile: secretFile, keyFile: secretFile, caFile: secretFile }).optional(),
    })
    .superRefine(({ workersAddress, restAddress, listenHost, tls }, context) => {
      if (tls !== undefined) return
      // Behind addresses of this machine alone there may be a listener that everybody reaches.
      const hosts = {
        workersAddress: parseAddress(workersAddress)?.host,
        restAddress: parseAddress(restAddress)?.host,
        listenHost,
      }
      for (const [name, host] of Object.entries(hosts)) {
        if (host === undefined || isLoopback(host)) continue
        const message = 'is not of this machine alone, so coordinator.tls is needed: tokens cross the network there'
        context.addIssue({ code: 'custom', path: [name], message })
      }
    }),
  tokens: z.strictObject({ workerFile: secretFile, ownerFile: secretFile, readerFile: secretFile }),
  kubernetes: z.strictObject({ namespace: text.max(253), name: text.max(253) }).optional(),
  worker: z.strictObject({ slots: wholeNumber.max(SLOTS_MAX).optional(), graceMs: wholeNumber.optional() }).optional(),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).optional(),
})

async function textOf(path: string, files: Pick<FileSystem, 'readFile'>): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await files.readFile(path))
  } catch (error) {
    throw distributedError('MR-D30', `${path}: ${(error as Error).message}.`, error)
  }
}

function parsed(text: string, place: string): unknown {
  try {
    return parse(text, { prettyErrors: false })
  } catch (error) {
    throw distributedError('MR-D30', `${place} is neither JSON nor YAML: ${(error as Error).message}.`, error)
  }
}

/** Our own words for each: zod's may show what was given. */
function said(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.map(String)
  const at = (): string => path.join('.') || 'the config'
  if (issue.code === 'invalid_type')
    return [
      issue.message.endsWith('received undefined')
        ? `${at()} is missing`
        : `${at()} must be ${article(issue.expected)}`,
    ]
  if (issue.code === 'invalid_value') return [`${at()} must be ${issue.values.join(' or ')}`]
  if (issue.code === 'too_small' || issue.code === 'too_big') return [`${at()} ${sizeOf(issue)}`]
  return [`${at()} ${issue.message}`]
}

function sizeOf(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  if (issue.code === 'too_big')
    return issue.origin === 'string' ? `is longer than ${issue.maximum} characters` : `is above ${issue.maximum}`
  return issue.origin === 'string' || issue.origin === 'array' ? 'is empty' : `is below ${issue.minimum}`
}

function article(type: string): string {
  if (type === 'int') return 'a whole number'
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`
}

/** Who writes a secret into the config is told where it belongs. */
function hint(name: string): string {
  return /token|password|secret|key|cred|cert|^ca$|user/i.test(name) && !name.endsWith('File')
    ? `; a secret stands in a file, named by a field that ends in File`
    : ''
}

function wrong(place: string, what: readonly string[]): MillraceError {
  return distributedError('MR-D31', `${place}: ${what.join('; ')}.`)
}
