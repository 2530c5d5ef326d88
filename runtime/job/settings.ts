// env.config: what a job says about its checkpoints, restarts and limits, with the defaults.

import type { CheckpointMode, JobSettings, OnUnknownCommit, RestartStrategySettings } from './contract.ts'
import { jobError } from './errors.ts'

/** Set in the job function: `env.config.checkpointIntervalMs = 5_000`. */
export interface JobConfig {
  /** From one trigger to the next, ms; undefined: no periodic checkpoints. Default 10 s. */
  checkpointIntervalMs: number | undefined
  /** Default exactly-once. at-least-once: no alignment; after a failure records may count twice. Savepoints are exact in both. */
  checkpointMode: CheckpointMode
  /** What becomes of the checkpoints when the job is cancelled. Default retain. */
  onCancellation: 'retain' | 'delete'
  /** A checkpoint not complete by then is aborted. Default 10 min. */
  checkpointTimeoutMs: number
  /** Between the end of one snapshot and the next trigger. Default 0. */
  minPauseMs: number
  /** Failed checkpoints in a row that the job bears; one more fails it. Default Infinity. */
  tolerableFailures: number
  /** Completed checkpoints that are kept. Default 3. */
  retained: number
  /** Default exponential-delay from 0.1 s to 1 min, factor 1.5, reset after 10 min without failure, jitter 0.1. */
  restartStrategy: RestartStrategySettings
  /** What restarts with a failed subtask. Default region: whatever is connected to it. */
  failoverStrategy: 'region' | 'full'
  /** Whether operators with state may go without uid; their state is then lost when the graph changes around them. Default false. */
  autoUid: boolean
  /** Longest time a record waits in a buffer for others, ms; 0: none. Default 100 ms. */
  bufferTimeoutMs: number
  /** Whether emitted records are frozen, so that changing one is an error. Default: in local mode and the test kit. */
  freezeRecords: boolean
  /** How long a permitted commit is tried before the job stops and asks. Default 5 min. */
  commitDeadlineMs: number
  /**
   * When the external system does not know a transaction that is to be committed. Default stop: the job stops and asks, since its
   * records may be lost. assume committed: for those who know that it was committed, as in a copy of a savepoint whose job did it.
   */
  onUnknownCommit: OnUnknownCommit
  /** How long a channel may be without progress before its attempt fails. Default 2 min. */
  channelDeadlineMs: number
  /** Of operators that do not set theirs. Default: what the command says, else 1. */
  parallelism: number | undefined
  /** Number of key groups; keyed state cannot be restored under another one. 1 to 32768. Default 128. */
  maxParallelism: number
}

export function defaultConfig(): JobConfig {
  return {
    checkpointIntervalMs: 10_000,
    checkpointMode: 'exactly-once',
    onCancellation: 'retain',
    checkpointTimeoutMs: 600_000,
    minPauseMs: 0,
    tolerableFailures: Number.POSITIVE_INFINITY,
    retained: 3,
    restartStrategy: {
      type: 'exponential-delay',
      initialDelayMs: 100,
      maxDelayMs: 60_000,
      multiplier: 1.5,
      resetAfterMs: 600_000,
      jitter: 0.1,
    },
    failoverStrategy: 'region',
    autoUid: false,
    bufferTimeoutMs: 100,
    freezeRecords: true,
    commitDeadlineMs: 300_000,
    onUnknownCommit: 'stop',
    channelDeadlineMs: 120_000,
    parallelism: undefined,
    maxParallelism: 128,
  }
}

/** Throws MR-J08 naming the first setting that is unknown or out of its range. */
export function settingsOf(config: JobConfig, overrides: Partial<JobSettings> = {}): JobSettings {
  refuseUnknownNames(config)
  const { parallelism: _, maxParallelism, ...configured } = config
  const settings: JobSettings = { ...configured, ...overrides }
  if (settings.checkpointIntervalMs !== undefined)
    check('checkpointIntervalMs', settings.checkpointIntervalMs, { min: 1 })
  check('checkpointTimeoutMs', settings.checkpointTimeoutMs, { min: 1 })
  check('minPauseMs', settings.minPauseMs, { min: 0 })
  if (settings.tolerableFailures !== Number.POSITIVE_INFINITY)
    check('tolerableFailures', settings.tolerableFailures, { min: 0 })
  check('retained', settings.retained, { min: 1 })
  check('bufferTimeoutMs', settings.bufferTimeoutMs, { min: 0 })
  check('commitDeadlineMs', settings.commitDeadlineMs, { min: 1 })
  check('channelDeadlineMs', settings.channelDeadlineMs, { min: 1 })
  checkMaxParallelism('env.config.maxParallelism', maxParallelism)
  checkOneOf('checkpointMode', settings.checkpointMode, ['exactly-once', 'at-least-once'])
  checkOneOf('onUnknownCommit', settings.onUnknownCommit, ['stop', 'assume committed'])
  checkOneOf('onCancellation', settings.onCancellation, ['retain', 'delete'])
  checkOneOf('failoverStrategy', settings.failoverStrategy, ['region', 'full'])
  checkRestartStrategy(settings.restartStrategy)
  return settings
}

function refuseUnknownNames(config: JobConfig): void {
  const known = Object.keys(defaultConfig())
  const unknown = Object.keys(config).find((name) => !known.includes(name))
  if (unknown !== undefined) throw jobError('MR-J08', `env.config.${unknown}: there is no such setting.`)
}

/** The fields of each strategy, and the least that each may be; `whole` ones are times in ms and counts. */
const restartStrategies: Readonly<
  Record<RestartStrategySettings['type'], Readonly<Record<string, { readonly min: number; readonly whole: boolean }>>>
> = {
  none: {},
  'fixed-delay': { attempts: { min: 0, whole: true }, delayMs: { min: 0, whole: true } },
  'failure-rate': {
    failuresPerInterval: { min: 0, whole: true },
    intervalMs: { min: 0, whole: true },
    delayMs: { min: 0, whole: true },
  },
  'exponential-delay': {
    initialDelayMs: { min: 0, whole: true },
    maxDelayMs: { min: 0, whole: true },
    multiplier: { min: 1, whole: false },
    resetAfterMs: { min: 0, whole: true },
    jitter: { min: 0, whole: false },
  },
}

/** Node runs job files without looking at types: a field that is missing or misspelt would be met at the first failure only. */
function checkRestartStrategy(strategy: RestartStrategySettings): void {
  const types = Object.keys(restartStrategies)
  if (!types.includes(strategy?.type))
    throw jobError('MR-J08', `env.config.restartStrategy is of no known type; known are ${types.join(', ')}.`)
  const fields = restartStrategies[strategy.type]
  const given: Readonly<Record<string, unknown>> = { ...strategy }
  const unknown = Object.keys(given).find((name) => name !== 'type' && fields[name] === undefined)
  if (unknown !== undefined)
    throw jobError('MR-J08', `env.config.restartStrategy.${unknown}: ${strategy.type} has no such field.`)
  for (const [name, { min, whole }] of Object.entries(fields)) {
    const value = given[name]
    if (typeof value === 'number' && value >= min && (whole ? Number.isSafeInteger(value) : Number.isFinite(value)))
      continue
    const what = `a${whole ? ' whole' : ''} number from ${min}`
    throw jobError('MR-J08', `env.config.restartStrategy.${name} is ${String(value)}; it must be ${what}.`)
  }
}

function checkOneOf(name: string, value: unknown, allowed: readonly unknown[]): void {
  if (!allowed.includes(value))
    throw jobError('MR-J08', `env.config.${name} is ${String(value)}; it must be ${allowed.join(' or ')}.`)
}

/** Throws MR-J08. `what` names the setting. */
export function checkMaxParallelism(what: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= 32_768) return
  throw jobError('MR-J08', `${what} is ${String(value)}; it must be a whole number from 1 to 32768.`)
}

function check(name: string, value: number, range: { readonly min: number; readonly max?: number }): void {
  const max = range.max ?? Number.MAX_SAFE_INTEGER
  if (Number.isSafeInteger(value) && value >= range.min && value <= max) return
  throw jobError(
    'MR-J08',
    `env.config.${name} is ${String(value)}; it must be a whole number from ${range.min} to ${max}.`,
  )
}
