// The words of `npm run e2e`.

import { parseArgs } from 'node:util'

export const usage = `npm run e2e [-- OPTIONS] [SCENARIO...]
  Without names: the core, then others in turn while time is left.
  --all                 every scenario
  --keep                leave the cluster up at the end, and use one that was left up
  --down                take down what an earlier run left up, and end
  --list                print the scenarios and end
  --minutes N           of those outside the core, only what is likely to end within N minutes (20)
  --turn WORD           another word is another order of the others (the commit)
  --name NAME           of the kind cluster (millrace); two names, two clusters
  --kubeconfig FILE     an existing cluster instead of kind
  --load 'COMMAND'      puts an image archive onto the existing cluster's nodes; the archive's path is added
  --image NAME          an image that the existing cluster has or pulls, instead of one packed here
  --help                print this and end`

export interface E2eOptions {
  readonly names: readonly string[]
  readonly all: boolean
  readonly keep: boolean
  readonly list: boolean
  readonly down: boolean
  readonly help: boolean
  readonly minutes: number
  readonly turn: string | undefined
  readonly clusterName: string | undefined
  readonly kubeconfig: string | undefined
  readonly load: readonly string[] | undefined
  readonly image: string | undefined
}

/** Throws with what is wrong. */
export function readOptions(args: readonly string[]): E2eOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      down: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
      minutes: { type: 'string', default: '20' },
      turn: { type: 'string' },
      name: { type: 'string' },
      kubeconfig: { type: 'string' },
      load: { type: 'string' },
      image: { type: 'string' },
    },
  })
  const minutes = Number(values.minutes)
  if (!(minutes >= 0)) throw new Error(`--minutes takes a number, not "${values.minutes}"`)
  for (const name of ['load', 'image'] as const)
    if (values[name] !== undefined && values.kubeconfig === undefined)
      throw new Error(`--${name} is for an existing cluster: give --kubeconfig`)
  if (values.down && (values.keep || values.all || values.list || positionals.length > 0))
    throw new Error('--down brings nothing up and runs nothing: give it alone, or with --name or --kubeconfig')
  return {
    names: positionals,
    all: values.all,
    keep: values.keep,
    list: values.list,
    down: values.down,
    help: values.help,
    minutes,
    turn: values.turn,
    clusterName: values.name,
    kubeconfig: values.kubeconfig,
    load: values.load?.split(/\s+/).filter((word) => word !== ''),
    image: values.image,
  }
}

/** What ends the cluster that a run with these options kept. */
export function downCommand({ clusterName, kubeconfig }: Pick<E2eOptions, 'clusterName' | 'kubeconfig'>): string {
  const which = kubeconfig === undefined ? ['--name', clusterName] : ['--kubeconfig', kubeconfig]
  const words = which[1] === undefined ? [] : which.map((word) => inShell(word!))
  return ['npm run e2e -- --down', ...words].join(' ')
}

const inShell = (word: string): string =>
  /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
