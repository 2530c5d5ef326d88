// A small protocol for testing the simulation itself: a client sends numbers until they are acknowledged, a server counts each once
// in HEAD, anybody may die at any time and is started again.

import type { Environment } from '../../base/environment.ts'
import type { FrameTransport } from '../../network/contract.ts'
import type { HeadStore, VersionedHead } from '../../storage/contract.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../storage/memory-store.ts'
import { slotId } from '../../base/ids.ts'
import { FaultPlan } from '../faults.ts'
import { SimNetwork } from '../network.ts'
import type { SimProcess } from '../process.ts'
import type { ScenarioModule, ScenarioOptions, ScenarioResult } from '../scenario.ts'
import { SimStore } from '../store.ts'
import type { World } from '../world.ts'

const numbers = 40
const resendMs = 50
const respawnMs = 20
/** Virtual time of the phase with faults, and bound of the phase without. */
const faultsMs = 60_000
const convergenceMs = 120_000

export const scenario: ScenarioModule['scenario'] = async (
  world: World,
  { planted }: ScenarioOptions,
): Promise<ScenarioResult> => {
  const head = new MemoryHeadStore()
  const network = new SimNetwork(world)
  const store = new SimStore(world, { objects: new MemoryObjectStore(), head })
  const [clients, servers] = [world.machine('client host'), world.machine('server host')]
  const alive = new Map<string, SimProcess>()
  let acknowledged = 0

  const keepRunning = (name: string, start: () => SimProcess): void => {
    const process = start()
    alive.set(name, process)
    process.onExit(undefined, () => {
      alive.delete(name)
      world.after(respawnMs, `respawn ${name}`, () => keepRunning(name, start))
    })
  }
  keepRunning('server', () => {
    const process = servers.spawn('server')
    startServer(process.environment, network.transport(process), store.head(process), planted.has('commit-before-swap'))
    return process
  })
  keepRunning('client', () => {
    const process = clients.spawn('client')
    const onProgress = (next: number): void => void (acknowledged = Math.max(acknowledged, next))
    const resends = !planted.has('frame-not-resent')
    startClient(process.environment, network.transport(process), { from: acknowledged, resends, onProgress })
    return process
  })

  const plan = new FaultPlan(
    world,
    { processes: () => [...alive.values()], network, services: [store] },
    { stepsMean: 20 },
  )
  // Goes on after the last number: what is struck then must not count anything twice.
  await world.run(() => plan.exhausted, { virtualMs: faultsMs })
  plan.stop()
  const end = await world.run(() => acknowledged === numbers, { virtualMs: convergenceMs })
  const counted = numbersIn(await head.read())
  const failures: string[] = []
  if (end !== 'reached') failures.push(`Only ${acknowledged} of ${numbers} were acknowledged (${end}).`)
  if (counted.length !== numbers) failures.push(`Acknowledged ${acknowledged}, but only ${counted.length} are counted.`)
  if (counted.some((number, index) => number !== index)) failures.push(`Counted in wrong order: ${counted.join(' ')}.`)
  return { failures, faults: plan.counts, figures: { counted: counted.length } }
}

/** Counts the next expected number by a swap of HEAD, and acknowledges what HEAD surely holds. */
function startServer(
  environment: Environment,
  transport: FrameTransport,
  head: HeadStore,
  promisesEarly: boolean,
): void {
  let known: { readonly head: VersionedHead | undefined; readonly count: number } | undefined
  let busy = false
  const load = async (): Promise<void> => {
    try {
      const stored = await head.read()
      known = { head: stored, count: numbersIn(stored).length }
      environment.log('info', 'read HEAD', { count: known.count })
    } catch {
      environment.clock.timer(resendMs, () => void load())
    }
  }
  const count = async (number: number, from: { readonly head: VersionedHead | undefined }): Promise<void> => {
    busy = true
    const swap = await head.swap(from.head?.version, new Uint8Array([...numbersIn(from.head), number]))
    environment.failpoints.hit('coordinator.swap.after')
    // Unclear or lost: the server knows nothing until it has read HEAD again.
    known = undefined
    environment.log('info', `swapped ${number}`, { outcome: swap.outcome })
    await load()
    busy = false
  }
  transport.subscribe('server', (bytes) => {
    const number = bytes[0] as number
    environment.failpoints.hit('task.process')
    if (known === undefined || busy) return
    const surely = known.count + (promisesEarly && number === known.count ? 1 : 0)
    if (number < surely) transport.send(address('client'), new Uint8Array([surely]))
    if (number === known.count)
      environment.executor.post(() => void (known !== undefined && !busy && count(number, known)))
  })
  void load()
}

function startClient(
  environment: Environment,
  transport: FrameTransport,
  options: { readonly from: number; readonly resends: boolean; readonly onProgress: (next: number) => void },
): void {
  let next = options.from
  const send = (again: boolean): void => {
    if (next < numbers && (!again || options.resends)) transport.send(address('server'), new Uint8Array([next]))
    environment.clock.timer(resendMs, () => send(true))
  }
  transport.subscribe('client', (bytes) => {
    next = Math.max(next, bytes[0] as number)
    options.onProgress(next)
  })
  send(false)
}

function numbersIn(head: VersionedHead | undefined): number[] {
  return head === undefined ? [] : [...head.bytes]
}

const address = (subject: string) => ({ slot: slotId(subject), subject })
