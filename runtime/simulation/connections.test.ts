import { describe, expect, it } from 'vitest'
import type { MessageConnection } from '../control/worker-contract.ts'
import { SimConnections } from './connections.ts'
import { SimNetwork } from './network.ts'
import type { SimProcess } from './process.ts'
import { World } from './world.ts'

const never = (): boolean => false

/** One connection of a worker to a coordinator, each on a host of its own, and what each end hears. */
async function connected(seed = 1) {
  const world = new World(seed)
  const network = new SimNetwork(world)
  const connections = new SimConnections(network, world.random.split('connections'))
  const [coordinator, worker] = [world.spawn('coordinator'), world.spawn('worker')]
  const heard: string[] = []
  const hear = (who: string, connection: MessageConnection): void => {
    connection.onMessage((message) => heard.push(`${who}: ${(message as { type: string }).type}`))
    connection.onClosed((reason) => heard.push(`${who}: closed, ${reason}`))
  }
  let accepted: MessageConnection | undefined
  let dialed: MessageConnection | undefined
  connections.listen(coordinator, (connection) => {
    accepted = connection
    hear('coordinator', connection)
  })
  connections.dial(worker, {
    onOpen: (connection) => {
      dialed = connection
      hear('worker', connection)
    },
    onFailed: (reason) => heard.push(`worker: failed, ${reason}`),
  })
  const pass = (virtualMs: number) => world.run(never, { virtualMs })
  await pass(100)
  return { world, network, connections, coordinator, worker, heard, pass, accepted: accepted!, dialed: dialed! }
}

function dialAgain(connections: SimConnections, process: SimProcess): string[] {
  const seen: string[] = []
  connections.dial(process, { onOpen: () => seen.push('open'), onFailed: (reason) => seen.push(reason) })
  return seen
}

describe('simulated connections', () => {
  it('carry messages in order, and say at the other end that they were closed, behind what was sent', async () => {
    const { dialed, heard, pass } = await connected()
    dialed.send({ type: 'heartbeat' })
    dialed.send({ type: 'leaving', graceMs: 1 })
    dialed.close()
    await pass(100)
    expect(heard).toEqual([
      'coordinator: heartbeat',
      'coordinator: leaving',
      'coordinator: closed, the other side closed the connection',
    ])
  })

  it('hold back what meets a cut, and deliver it once there is a way again', async () => {
    const { dialed, heard, pass, network, worker, coordinator } = await connected()
    network.cut({ from: worker, to: coordinator }, 3_000)
    dialed.send({ type: 'heartbeat' })
    await pass(2_900)
    expect(heard).toEqual([])
    await pass(1_000)
    expect(heard).toEqual(['coordinator: heartbeat'])
  })

  it('are reset by the end of a process, also of one that is frozen, and not by that of its host', async () => {
    const killed = await connected()
    killed.coordinator.freeze(60_000)
    killed.accepted.send({ type: 'heartbeat' })
    killed.coordinator.kill('killed')
    await killed.pass(100)
    expect(killed.heard).toEqual(['worker: closed, the connection was reset'])
    const dark = await connected()
    dark.coordinator.machine.crash('power loss')
    await dark.pass(60_000)
    expect(dark.heard).toEqual([])
  })

  it('are made to one who is frozen, and not to nobody; behind a cut they are tried again', async () => {
    const { connections, coordinator, worker, network, pass } = await connected()
    coordinator.freeze(60_000)
    const frozen = dialAgain(connections, worker)
    await pass(100)
    expect(frozen).toEqual(['open'])
    network.cut({ from: worker }, 1_500)
    const late = dialAgain(connections, worker)
    await pass(1_000)
    expect(late).toEqual([])
    await pass(2_000)
    expect(late).toEqual(['open'])
    coordinator.kill('killed')
    const nobody = dialAgain(connections, worker)
    await pass(100)
    expect(nobody).toEqual(['nobody listens there'])
  })
})
