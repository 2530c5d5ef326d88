// What the command line says. It reads no file: whether a job file exists is found when it is run.
// A command is a file with its CommandSyntax, a line in `syntaxes`, and a branch in main.ts.

import { adminSyntax } from './admin-options.ts'
import { cancelSyntax } from './cancel-command.ts'
import { checkpointsSyntax } from './checkpoints-command.ts'
import { commandError } from './errors.ts'
import { exceptionsSyntax } from './exceptions-command.ts'
import { listSyntax } from './list-command.ts'
import { preflightSyntax } from './preflight-options.ts'
import { rescaleSyntax } from './rescale-command.ts'
import { runSyntax } from './run-options.ts'
import { savepointSyntax } from './savepoint-command.ts'
import { statusSyntax } from './status-command.ts'
import { stopSyntax } from './stop-command.ts'
import { validateSyntax } from './validate-options.ts'
import { coordinatorSyntax } from './coordinator-command.ts'
import { workerSyntax } from './worker-command.ts'

const syntaxes = [
  runSyntax,
  validateSyntax,
  listSyntax,
  statusSyntax,
  checkpointsSyntax,
  exceptionsSyntax,
  savepointSyntax,
  stopSyntax,
  cancelSyntax,
  rescaleSyntax,
  adminSyntax,
  preflightSyntax,
  coordinatorSyntax,
  workerSyntax,
] as const

export type Command =
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | ReturnType<(typeof syntaxes)[number]['parse']>

const helpWords = new Set(['--help', '-h'])

/** Throws MR-L10 or MR-L11. */
export function parseCommandLine(argv: readonly string[]): Command {
  const [verb, ...words] = argv
  if (verb === undefined) throw commandError('MR-L10', 'It names no command.')
  if (helpWords.has(verb)) return { kind: 'help', text: overview() }
  if (verb === '--version') return { kind: 'version' }
  if (verb.startsWith('-')) throw commandError('MR-L10', `It begins with ${verb}; the command comes first.`)
  const syntax = syntaxes.find(({ name }) => name === verb)
  if (syntax === undefined) throw commandError('MR-L10', `There is no command ${verb}.`)
  if (words.some((word) => helpWords.has(word))) return { kind: 'help', text: syntax.help }
  return syntax.parse(words)
}

function overview(): string {
  const heads = syntaxes.map(({ name, takes }) => `millrace ${name} ${takes}`)
  const width = Math.max(...heads.map(({ length }) => length))
  return [
    ...syntaxes.map(({ summary }, index) => `${heads[index]!.padEnd(width)}   ${summary}`),
    '',
    `${'millrace <command> --help'.padEnd(width)}   its options and exit codes`,
    `${'millrace --version'.padEnd(width)}   the version`,
  ].join('\n')
}
