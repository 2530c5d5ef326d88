// runc for a machine whose root lacks CAP_SYS_RESOURCE: takes out of the specification that runc is handed what needs that capability: itself,
// a lowered score for the out-of-memory killer, raised limits. Called by the engine in runc's place, with runc's arguments.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface ProcessSpec {
  oomScoreAdj?: number
  capabilities?: Record<string, string[] | undefined>
  rlimits?: { type: string; hard: number; soft: number }[]
}

const args = process.argv.slice(2)
if (args.some((arg) => arg === 'create' || arg === 'run' || arg === 'exec')) {
  const bundle = valueOf('--bundle', '-b')
  const file = bundle === undefined ? valueOf('--process', '-p') : join(bundle, 'config.json')
  if (file !== undefined) {
    const spec = JSON.parse(readFileSync(file, 'utf8')) as ProcessSpec & { process?: ProcessSpec }
    mend(spec.process ?? spec)
    writeFileSync(file, JSON.stringify(spec))
  }
}
process.execve!('/usr/sbin/runc', ['runc', ...args], process.env)

function valueOf(...names: readonly string[]): string | undefined {
  for (const [index, arg] of args.entries()) {
    if (names.includes(arg)) return args[index + 1]
    for (const name of names) if (arg.startsWith(`${name}=`)) return arg.slice(name.length + 1)
  }
  return undefined
}

function mend(spec: ProcessSpec): void {
  if ((spec.oomScoreAdj ?? 0) < 0) spec.oomScoreAdj = 0
  for (const [set, names] of Object.entries(spec.capabilities ?? {}))
    spec.capabilities![set] = names?.filter((name) => name !== 'CAP_SYS_RESOURCE')
  const openFilesMax = hardLimitOfOpenFiles()
  spec.rlimits = spec.rlimits
    ?.filter(({ type }) => type === 'RLIMIT_NOFILE')
    .map(({ type, hard, soft }) => ({ type, hard: Math.min(hard, openFilesMax), soft: Math.min(soft, openFilesMax) }))
}

/** This process's own: no child may have more. */
function hardLimitOfOpenFiles(): number {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((text) => text.startsWith('Max open files'))
  const hard = line?.trim().split(/\s+/)[4]
  return hard === undefined || hard === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(hard)
}
