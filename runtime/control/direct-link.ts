// A ControlLink over a port that loses nothing and keeps order (a MessagePort between threads): no numbers, no repeats. The
// peer is lost when the port closes, which a thread's end does to all its ports.

import type { ControlLink } from './contract.ts'
import { Delivery } from './delivery.ts'

/** What is used of a MessagePort. */
export interface ReliablePort {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'close', listener: () => void): unknown
  close(): void
}

export function createDirectLink<Out, In>(port: ReliablePort): ControlLink<Out, In> {
  const delivery = new Delivery<In>()
  port.on('message', (message) => delivery.message(message as In))
  port.on('close', () => delivery.lose('its thread ended'))
  return {
    send: (message) => {
      if (!delivery.closed) port.postMessage(message)
    },
    onMessage: (callback) => delivery.onMessage(callback),
    onLost: (callback) => delivery.onLost(callback),
    close: () => {
      if (delivery.closed) return
      delivery.close()
      port.close()
    },
  }
}
