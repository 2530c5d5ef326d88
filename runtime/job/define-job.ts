// What a job file exports.

import type { ZodType } from 'zod'
import { jobError } from './errors.ts'
import type { JobEnvironment } from './job-environment.ts'

const mark = Symbol.for('millrace.job')

/** A job before its graph is built: pure, so that every process builds the same. */
export interface Job {
  readonly name: string | undefined
  /** undefined: the job takes no arguments. */
  readonly args: ZodType | undefined
  readonly define: (env: JobEnvironment, args: never) => void
  readonly summary: ((finished: FinishedJob<never>) => string | Promise<string>) | undefined
}

/** What a summary is made from. */
export interface FinishedJob<Args> {
  readonly args: Args
  /** As env.job. */
  readonly job: string
}

export interface JobOptions<Args> {
  /** For people; the default is the job file's name. */
  readonly name?: string
  /** Checks and types the job's arguments. */
  readonly args?: ZodType<Args>
  /** A short text, such as a table, that the command prints when the job has finished; made from what the job wrote. */
  readonly summary?: (finished: FinishedJob<Args>) => string | Promise<string>
}

/** `export default defineJob({ args: z.object({ … }) }, (env, args) => { … })`. The function must not await anything and must build the same graph each time. */
export function defineJob(define: (env: JobEnvironment) => void): Job
export function defineJob<Args = undefined>(
  options: JobOptions<Args>,
  define: (env: JobEnvironment, args: Args) => void,
): Job
export function defineJob<Args>(
  first: JobOptions<Args> | ((env: JobEnvironment) => void),
  second?: (env: JobEnvironment, args: Args) => void,
): Job {
  const options: JobOptions<Args> = typeof first === 'function' ? {} : first
  const define = typeof first === 'function' ? first : second
  const job: Job & { readonly [mark]: true } = {
    [mark]: true,
    name: options.name,
    args: options.args,
    define: define as Job['define'],
    summary: options.summary,
  }
  return job
}

/** The job that a loaded module exports; throws MR-J02 otherwise. `where` names the file. */
export function jobOf(module: unknown, where: string): Job {
  const exported = typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined
  // Not by class: a job file may load another copy of millrace than the command.
  if (typeof exported === 'object' && exported !== null && mark in exported) return exported as unknown as Job
  const found =
    exported === undefined
      ? 'no default export'
      : `a default export that is ${typeof exported === 'object' ? 'another object' : `a ${typeof exported}`}`
  throw jobError('MR-J02', `${where} has ${found}.`)
}
