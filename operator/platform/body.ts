// The body of an HTTP message: whole, and of a bounded size.

import type { IncomingMessage } from 'node:http'

/** Rejects when it is larger. */
export async function bodyOf(message: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message) {
    bytes += (chunk as Buffer).length
    if (bytes > bytesMax) throw new Error(`a body of more than ${bytesMax} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}
