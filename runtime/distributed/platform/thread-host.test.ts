// Real threads, whose job file is not there: each has a link, and says over it that it has no slot.

import { afterEach, describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId, start } from '../../base/ids.ts'
import type { DatagramPort } from '../../control/link.ts'
import { LINK_VERSION } from '../../control/link-machine.ts'
import type { LinkPacket } from '../../control/link-machine.ts'
import { parseFailpoints } from '../../local/failpoint-plan.ts'
import { realEnvironment } from '../../local/platform/real-environment.ts'
import type { ProcessConfig } from '../contract.ts'
import { ThreadHost } from './thread-host.ts'

const slot = slotId('0#1.1')

const undo: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const act of undo.splice(0)) await act()
})

/** The other end of the newest link. */
class Peer implements DatagramPort {
  readonly heard: LinkPacket[] = []
  refuses = false
  #say: (packet: unknown) => void = () => undefined

  send(packet: unknown): void {
    if (this.refuses) throw new Error('it is too large')
    this.heard.push(packet as LinkPacket)
  }

  onMessage(callback: (packet: unknown) => void): void {
    this.#say = callback
  }

  close(): void {
    this.#say = () => undefined
  }

  /** In the name of one life of the coordinator's side. */
  async says(from: string): Promise<void> {
    await until(() => this.heard.length > 0)
    const to = this.heard.at(-1)!.from
    const numbers = { version: LINK_VERSION, received: 0, number: 0, payload: undefined }
    this.#say({ ...numbers, kind: 'acknowledge', from, to } satisfies LinkPacket)
  }
}

function hosted() {
  const peers: Peer[] = []
  const said: string[] = []
  const config = {
    version: 1,
    job: { id: jobId('uid-1'), name: 'none', start: start(1), file: '/there/is/no/such/job.ts' },
    storage: { checkpoints: 'file:///there/is/no/store' },
    nats: { servers: [] },
    coordinator: { workersAddress: '127.0.0.1:1', restAddress: '127.0.0.1:1' },
    tokens: { workerFile: '', ownerFile: '', readerFile: '' },
  } satisfies ProcessConfig
  const host = new ThreadHost({
    config,
    worker: 'w-0',
    slotCount: 1,
    environment: realEnvironment({ log: () => undefined }),
    failpoints: parseFailpoints(''),
    control: {
      datagrams: () => {
        peers.push(new Peer())
        return peers.at(-1)!
      },
    },
  })
  undo.push(() => host.close())
  host.onLinkLost((lost, reason) => said.push(`link of ${lost} lost: ${reason}`))
  host.onEnded((ended, reason) => said.push(`${ended} ended: ${reason}`))
  host.start(slot, { incarnation: incarnation(1), parallelism: undefined })
  return { host, peers, said }
}

describe('the link of a slot', () => {
  it('that the slot itself finds lost is told of, and the slot lives', async () => {
    const { host, peers, said } = hosted()
    await peers[0]!.says('first life')
    await peers[0]!.says('second life')
    await until(() => said.length > 0)
    expect(said).toEqual(['link of 0#1.1 lost: its control link was lost, and its log says why'])
    host.attach(slot, incarnation(2))
    await until(() => peers[1]!.heard.some(({ kind }) => kind === 'open'))
    host.terminate(slot)
    await until(() => said.length > 1)
    expect(said[1]).toBe('0#1.1 ended: it was asked to end')
    await turns()
    expect(said).toHaveLength(2)
  })

  it('that ends with its coordinator, or with its slot, is no news', async () => {
    const { host, peers, said } = hosted()
    await peers[0]!.says('first life')
    host.detach(slot, 'the coordinator is gone')
    await turns()
    host.attach(slot, incarnation(2))
    await peers[1]!.says('next')
    await turns()
    expect(said).toEqual([])
    host.detach(slot, 'that one too')
    host.terminate(slot)
    await until(() => said.length > 0)
    await turns()
    expect(said).toEqual(['0#1.1 ended: it was asked to end'])
  })

  it('over which cannot be sent what the slot has to say is as good as lost', async () => {
    const { peers, said } = hosted()
    peers[0]!.refuses = true
    await until(() => said.length > 0)
    expect(said[0]).toBe('link of 0#1.1 lost: it has to say what cannot be sent: it is too large')
  })
})

/** What is under way between threads arrives. */
async function turns(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100))
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}
