// How each command reads its words: strictly, with one clear error.

import { parseArgs } from 'node:util'
import type { ParseArgsOptionsConfig } from 'node:util'
import { commandError } from './errors.ts'

/** One sub-command: what it is called, how it is explained, and what its words mean. It reads no file. */
export interface CommandSyntax<Parsed> {
  readonly name: string
  /** After the name, in the list of commands: `<job file>`. */
  readonly takes: string
  /** A line in the list of commands. */
  readonly summary: string
  /** What `millrace <name> --help` prints. */
  readonly help: string
  /** Of the words after the name; throws MR-L10 or MR-L11. */
  readonly parse: (words: readonly string[]) => Parsed
}

/** The words as parseArgs takes them apart; throws MR-L10 for an option that is unknown or lacks its value. */
export function readWords<const Options extends ParseArgsOptionsConfig>({
  command,
  words,
  options,
}: {
  readonly command: string
  readonly words: readonly string[]
  readonly options: Options
}) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (error) {
    // Its first sentence names the option; what follows is advice for commands that take dashes as words.
    const [said = ''] = (error as Error).message.split('. ')
    const meant = nearestOption(/^Unknown option '--([^']+)'/.exec(said)?.[1], Object.keys(options))
    const hint = meant === undefined ? '' : ` Is --${meant} meant?`
    throw commandError('MR-L10', `${command}: ${said.endsWith('.') ? said : `${said}.`}${hint}`, error)
  }
}

/** The one thing that a command is about; throws MR-L10 when there is none or more. */
export function onlyWord({
  command,
  what,
  words,
}: {
  readonly command: string
  /** `job file` */
  readonly what: string
  readonly words: readonly string[]
}): string {
  const [only, ...rest] = words
  if (only === undefined || only === '') throw commandError('MR-L10', `${command} needs a ${what}.`)
  if (rest.length > 0) throw commandError('MR-L10', `${command} takes one ${what}; there is also ${rest.join(' ')}.`)
  return only
}

/** undefined where the option is not given; `unit` is what it counts, where that is not said by its name. Throws MR-L11. */
export function wholeNumber(option: string, text: string | undefined, unit?: 'milliseconds'): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < 1 || !Number.isSafeInteger(value))
    throw commandError(
      'MR-L11',
      `--${option} is ${text}; it must be a whole number${unit === undefined ? '' : ` of ${unit}`} from 1.`,
    )
  return value
}

/** A path or a name; an empty one would mean the working folder, or nothing. Throws MR-L11. */
export function notEmpty(option: string, text: string | undefined): string | undefined {
  if (text === '') throw commandError('MR-L11', `--${option} is empty.`)
  return text
}

/** A folder on this machine, as given. Throws MR-L11. */
export function localFolder(option: string, text: string | undefined): string | undefined {
  if (text !== undefined && /^[a-z0-9]+:\/\//i.test(text))
    throw commandError('MR-L11', `--${option} is ${text}; it must be a folder on this machine.`)
  return notEmpty(option, text)
}

/** Of options that may be given again: `name=value`, in their order. Throws MR-L11. */
export function namedValues(option: string, texts: readonly string[] | undefined): (readonly [string, string])[] {
  return (texts ?? []).map((text) => {
    const equals = text.indexOf('=')
    if (equals < 1) throw commandError('MR-L11', `--${option} ${text}; it must be name=value.`)
    return [text.slice(0, equals), text.slice(equals + 1)]
  })
}

/** {} where it is not given; throws MR-L11. */
export function jsonObject(option: string, text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw commandError('MR-L11', `--${option} is no JSON: ${(error as Error).message}.`, error)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw commandError('MR-L11', `--${option} is ${text}; it must be an object, such as '{"input":"a.csv"}'.`)
  return value as Record<string, unknown>
}

/** Letters that may be wrong in an option that is still recognised. */
const wrongLettersMax = 2

/** undefined: none is near, or several are equally near. */
function nearestOption(said: string | undefined, options: readonly string[]): string | undefined {
  if (said === undefined) return undefined
  const near = options
    .map((option) => ({ option, distance: editDistance(said, option) }))
    .filter(({ option, distance }) => distance <= wrongLettersMax && distance < option.length / 2)
    .toSorted((one, other) => one.distance - other.distance)
  return near.length > 1 && near[0]!.distance === near[1]!.distance ? undefined : near[0]?.option
}

/** How many letters are put in, left out or changed (Wagner and Fischer, The String-to-String Correction Problem, 1974). */
function editDistance(one: string, other: string): number {
  let before = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 0; row < one.length; row++) {
    const now = [row + 1]
    for (let index = 1; index <= other.length; index++)
      now.push(
        Math.min(before[index]! + 1, now[index - 1]! + 1, before[index - 1]! + (one[row] === other[index - 1] ? 0 : 1)),
      )
    before = now
  }
  return before[other.length]!
}
