// `npm run e2e`: brings a cluster up, runs scenarios on it, keeps what failed ones leave to read, takes the cluster down.
// Last line: `N passed, N failed`.

import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Cluster } from './contract.ts'
import { ownLabel } from './access.ts'
import { existingCluster } from './existing.ts'
import { helmUninstall, isInstalled } from './installation.ts'
import { kindCluster } from './kind.ts'
import { downCommand, readOptions, usage } from './options.ts'
import type { E2eOptions } from './options.ts'
import { nextTurn, planOf } from './plan.ts'
import { clusterReady } from './ready.ts'
import { endCommands, run } from './run.ts'
import type { Scenario } from './scenario.ts'

const scenarioFolder = new URL('../scenarios/', import.meta.url)
const usualDeadlineMs = 600_000

/** How a scenario ended. */
type Outcome = 'passed' | 'failed' | 'late'

async function main(): Promise<number> {
  const options = optionsOrUsage()
  if (options === undefined) return 2
  if (options.help) {
    console.log(usage)
    return 0
  }
  const scenarios = await loadScenarios()
  if (options.list) {
    for (const { name, core } of scenarios) console.log(`${name}${core ? ' (core)' : ''}`)
    return 0
  }
  const { kubeconfig, load, clusterName } = options
  const cluster = kubeconfig === undefined ? kindCluster({ name: clusterName }) : existingCluster({ kubeconfig, load })
  if (options.down) return takeDownKept(cluster)
  const turn = options.turn ?? (await commit())
  const { fixed, turns, impossible } = planOf(scenarios, { ...options, turn, can: cluster.can })
  for (const { name, needs } of impossible)
    console.log(`not possible on this cluster: ${name} (needs ${needs?.join(', ')})`)
  endOnSignal(cluster, options)
  const endMs = performance.now() + options.minutes * 60_000
  const counts = { passed: 0, failed: 0 }
  try {
    const image = await clusterReady(cluster, options)
    const left = { fixed: [...fixed], turns: [...turns] }
    for (;;) {
      const scenario = left.fixed.shift() ?? nextTurn(left.turns, endMs - performance.now())
      if (scenario === undefined) break
      left.turns = left.turns.filter((turn) => turn !== scenario)
      const outcome = await runScenario(cluster, scenario, image)
      counts[outcome === 'passed' ? 'passed' : 'failed']++
      // It may still be at work, and would disturb the next.
      if (outcome === 'late') {
        counts.failed += left.fixed.length
        console.log('the run ends here: a scenario that does not end would disturb the others')
        break
      }
      if (!options.keep) await removeNamespaces(cluster)
    }
    if (left.turns.length > 0)
      console.log(`not begun, for want of time: ${left.turns.map(({ name }) => name).join('; ')}`)
  } catch (error) {
    counts.failed++
    console.log(String((error as Error).stack))
  }
  if (options.keep) sayThatItStays(cluster, options)
  else await takeDown(cluster)
  const skipped = impossible.length === 0 ? '' : `, ${impossible.length} skipped`
  console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`)
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1
}

function optionsOrUsage(): E2eOptions | undefined {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    return undefined
  }
}

async function loadScenarios(): Promise<Scenario[]> {
  const files = (await readdir(fileURLToPath(scenarioFolder))).filter((name) => /^[^.]+\.ts$/.test(name)).toSorted()
  const found: Scenario[] = []
  for (const file of files) {
    const { scenario } = (await import(new URL(file, scenarioFolder).href)) as { readonly scenario?: Scenario }
    if (scenario === undefined) throw new Error(`e2e/scenarios/${file} exports no scenario`)
    found.push(scenario)
  }
  return found
}

/** A cluster of our own goes with all that is in it. */
async function takeDown(cluster: Cluster): Promise<void> {
  if (cluster.provider === 'existing' && (await isInstalled(cluster))) await helmUninstall(cluster)
  await cluster.down()
}

async function takeDownKept(cluster: Cluster): Promise<number> {
  try {
    const installed = cluster.provider === 'existing' && (await isInstalled(cluster))
    if (installed) await helmUninstall(cluster)
    const found = await cluster.downKept()
    console.log(found || installed ? 'it is down' : 'there is nothing to take down')
    return 0
  } catch (error) {
    console.error((error as Error).message)
    return 1
  }
}

function sayThatItStays({ kubeconfig }: Cluster, options: E2eOptions): void {
  console.log(
    `the cluster is left up: kubectl --kubeconfig ${kubeconfig} get pods -A; its end: ${downCommand(options)}`,
  )
}

async function runScenario(cluster: Cluster, scenario: Scenario, image: string): Promise<Outcome> {
  const { name, deadlineMs = usualDeadlineMs } = scenario
  const begunMs = performance.now()
  const seconds = (): string => ((performance.now() - begunMs) / 1000).toFixed(1)
  console.log(`--- ${name}`)
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => {
      controller.abort(new Error(`scenario "${name}" did not end within ${deadlineMs} ms`))
      resolve('late')
    }, deadlineMs)
  })
  const say = (text: string): void => console.log(`  ${seconds().padStart(6)} s  ${text}`)
  const work = scenario.run(cluster, { image, signal: controller.signal, say }).then(
    (): Outcome => 'passed',
    (error: unknown): Outcome => {
      console.log(error instanceof Error ? error.stack : String(error))
      return 'failed'
    },
  )
  const outcome = await Promise.race([work, late])
  clearTimeout(timer)
  console.log(
    `--- ${name}: ${outcome === 'late' ? `failed, not ended within ${deadlineMs} ms` : outcome} (${seconds()} s)`,
  )
  if (outcome !== 'passed') {
    const folder = await cluster.collect(name.replaceAll(/[^a-zA-Z0-9]+/g, '-'), await foreignNamespaces(cluster))
    console.log(`logs, events and objects: ${folder}`)
  }
  return outcome
}

/** All but Kubernetes' own. */
async function foreignNamespaces(cluster: Cluster): Promise<string[]> {
  const { stdout } = await cluster.kubectl(['get', 'namespaces', '-o', 'name'], { anyCode: true })
  return stdout
    .split('\n')
    .map((line) => line.replace('namespace/', ''))
    .filter((name) => name !== '' && !/^(kube-|local-path-storage$)/.test(name))
}

async function removeNamespaces(cluster: Cluster): Promise<void> {
  const { stdout } = await cluster.kubectl(['get', 'namespaces', '--selector', `${ownLabel}=true`, '-o', 'name'])
  for (const line of stdout.split('\n').filter((text) => text !== ''))
    await cluster.removeNamespace(line.replace('namespace/', ''))
}

async function commit(): Promise<string> {
  const { stdout } = await run('git', ['rev-parse', 'HEAD'], { anyCode: true }).catch(() => ({ stdout: '' }))
  return stdout.trim()
}

/** A run that is told to end takes its cluster with it. */
function endOnSignal(cluster: Cluster, options: E2eOptions): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      console.log(`${signal}: the run ends`)
      endCommands()
      if (options.keep) sayThatItStays(cluster, options)
      const down = options.keep ? Promise.resolve() : cluster.down()
      down.catch((error: unknown) => console.log(String(error))).finally(() => process.exit(1))
    })
}

const code = await main()
// What a failed scenario has left waiting (a port that is forwarded, say) must not keep the run.
endCommands()
process.exit(code)
