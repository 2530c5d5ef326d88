// A link's packets between a slot's thread and the main thread, which has the connection that carries them on.

import type { MessagePort } from 'node:worker_threads'
import type { DatagramPort } from '../../control/link.ts'

/** The thread's end. */
export function datagramsOver(port: MessagePort): DatagramPort {
  return {
    send: (message) => port.postMessage(message),
    onMessage: (callback) => void port.on('message', callback),
    close: () => port.close(),
  }
}

/** The main thread's end: both close together, whichever is closed first. `onRefused`: `far` cannot carry a message, nor would it a second time. */
export function joinPorts(near: MessagePort, far: DatagramPort, onRefused: (error: unknown) => void): void {
  near.on('message', (message) => {
    try {
      far.send(message)
    } catch (error) {
      onRefused(error)
    }
  })
  far.onMessage((message) => near.postMessage(message))
  near.on('close', () => far.close())
}
