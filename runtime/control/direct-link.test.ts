import { MessageChannel, Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { createDirectLink } from './direct-link.ts'

describe('a direct link', () => {
  it('delivers in order, also what came before anybody listened', async () => {
    const { port1, port2 } = new MessageChannel()
    const [left, right] = [createDirectLink<number, number>(port1), createDirectLink<number, number>(port2)]
    for (const number of [1, 2]) left.send(number)
    await new Promise((resolve) => setTimeout(resolve, 20))
    const got: number[] = []
    const complete = new Promise<void>((resolve) => {
      right.onMessage((number) => {
        got.push(number)
        if (got.length === 3) resolve()
      })
    })
    left.send(3)
    await complete
    expect(got).toEqual([1, 2, 3])
    left.close()
  })

  it('loses its peer when that thread is terminated', async () => {
    const { port1, port2 } = new MessageChannel()
    const worker = new Worker(`require('node:worker_threads').workerData.port.on('message', () => {})`, {
      eval: true,
      workerData: { port: port2 },
      transferList: [port2],
    })
    const link = createDirectLink<string, string>(port1)
    const lost = new Promise<string>((resolve) => link.onLost(resolve))
    link.send('hello')
    await worker.terminate()
    expect(await lost).toBe('its thread ended')
    link.send('into the void')
  })

  it('closed by this side, tells of no loss', async () => {
    const { port1 } = new MessageChannel()
    const link = createDirectLink<string, string>(port1)
    let lost = 0
    link.onLost(() => lost++)
    link.close()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(lost).toBe(0)
  })
})
