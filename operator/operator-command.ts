// The command line of the operator's process.

import { parseArgs } from 'node:util'
import { logLevel, namespaceName } from '../crds/resource.ts'
import { errorsOf } from '../runtime/base/errors.ts'
import { operatorErrors } from './errors.ts'
import { readOperatorConfig } from './resources/operator-config.ts'
import type { OperatorConfig } from './resources/operator-config.ts'

const fail = errorsOf(operatorErrors)

export const help = `node operator/main.ts [uninstall] --config FILE [options]   the Kubernetes operator of Millrace

It watches StreamJobs and Savepoints, and one of its replicas, the leader, makes of each what its spec says. SIGTERM ends it at once: jobs run
on, and the lease is given back.

uninstall: takes the operator's Deployment (OPERATOR_DEPLOYMENT) down, and its finalizers off all StreamJobs and Savepoints; jobs run on.

  --config FILE          what the chart wrote (YAML); needed
  --namespace NAME       its own: of the lease and its Secrets. Default: OPERATOR_NAMESPACE, else the service account's
  --namespaces A,B       StreamJobs of these alone, whatever the config says; '*': of all
  --kubeconfig FILE      default: the pod's service account, or as kubectl finds it
  --service-account DIR  of the pod's account: token, ca.crt, namespace; default: as Kubernetes mounts it
  --server URL           instead of the kubeconfig's: a proxy before the API server
  --coordinators H:P     all coordinators are met there instead of at their Services: an operator outside of the cluster
  --port N               of metrics and probes, whatever the config says; 0: a free one
  --log-level LEVEL      debug, info, warn, error
  --help, --version
`

export type OperatorCommand =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'run' | 'uninstall'
      readonly config: string
      readonly namespace: string | undefined
      readonly namespaces: readonly string[] | undefined
      readonly kubeconfig: string | undefined
      readonly serviceAccount: string | undefined
      readonly server: string | undefined
      readonly coordinators: { readonly host: string; readonly port: number } | undefined
      readonly port: number | undefined
      readonly logLevel: OperatorConfig['logLevel'] | undefined
    }

const string = { type: 'string' } as const

export type RunCommand = Extract<OperatorCommand, { readonly config: string }>

/** Throws MR-P01. */
export function parseCommand(words: readonly string[]): OperatorCommand {
  const isUninstall = words[0] === 'uninstall'
  const values = valuesOf(isUninstall ? words.slice(1) : words)
  if (values.help === true) return { kind: 'help' }
  if (values.version === true) return { kind: 'version' }
  if (values.config === undefined) throw fail('MR-P01', '--config is missing.')
  return {
    kind: isUninstall ? 'uninstall' : 'run',
    config: values.config,
    namespace: values.namespace,
    namespaces: namespacesOf(values.namespaces),
    kubeconfig: values.kubeconfig,
    serviceAccount: values['service-account'],
    server: values.server,
    coordinators: values.coordinators === undefined ? undefined : addressOf(values.coordinators),
    port: values.port === undefined ? undefined : portOf('--port', values.port, 0),
    logLevel: values['log-level'] === undefined ? undefined : levelOf(values['log-level']),
  }
}

function valuesOf(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      strict: true,
      allowPositionals: false,
      options: {
        config: string,
        namespace: string,
        namespaces: string,
        kubeconfig: string,
        'service-account': string,
        server: string,
        coordinators: string,
        port: string,
        'log-level': string,
        help: { type: 'boolean' },
        version: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    throw fail('MR-P01', `${(error as Error).message.split('. ')[0]}.`, error)
  }
}

function namespacesOf(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined
  if (text === '*') return []
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !namespaceName.safeParse(name).success)
  if (wrong !== undefined) throw fail('MR-P01', `--namespaces: "${wrong}" is no name of a namespace.`)
  return names
}

function addressOf(text: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(.+):(\d+)$/.exec(text) ?? []
  if (host === undefined || port === undefined)
    throw fail('MR-P01', `--coordinators is "${text}"; it must be host:port.`)
  return { host, port: portOf('--coordinators', port, 1) }
}

function portOf(flag: string, text: string, least: number): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port >= least && port <= 65_535) return port
  throw fail('MR-P01', `${flag} is "${text}"; a port is a whole number from ${least} to 65535.`)
}

function levelOf(text: string): OperatorConfig['logLevel'] {
  const level = logLevel.options.find((one) => one === text)
  if (level === undefined)
    throw fail('MR-P01', `--log-level is "${text}"; it must be one of ${logLevel.options.join(', ')}.`)
  return level
}

/** The file with what the command line says over it. Throws MR-P02 with all that is wrong. */
export function configOf(text: string, command: RunCommand): OperatorConfig {
  const read = readOperatorConfig(text)
  if (read.kind !== 'fits') throw fail('MR-P02', `${command.config}: ${read.problems.join('; ')}.`)
  const { namespaces, port, logLevel } = command
  return {
    ...read.config,
    ...(namespaces !== undefined && { namespaces: [...namespaces] }),
    ...(port !== undefined && { port }),
    ...(logLevel !== undefined && { logLevel }),
  }
}
