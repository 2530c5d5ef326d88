// Links to a test's NATS server: what they read as secrets, and what they report, is held here.

import type { Environment } from '../../../runtime/base/environment.ts'
import type { MillraceError } from '../../../runtime/base/errors.ts'
import { jobId, slotId } from '../../../runtime/base/ids.ts'
import type { NatsConfig, NatsLink } from '../../../runtime/distributed/contract.ts'
import { realEnvironment } from '../../../runtime/local/platform/real-environment.ts'
import type { PeerAddress } from '../../../runtime/network/contract.ts'
import { connectNats } from '../../../runtime/network/nats/connect.ts'
import type { ConnectNatsOptions } from '../../../runtime/network/nats/connect.ts'

export interface OpenOptions extends Partial<Omit<ConnectNatsOptions, 'job'>> {
  readonly job?: string
}

export class TestLinks {
  /** Content by file. */
  readonly secrets = new Map<string, string>()
  readonly errors: MillraceError[] = []
  readonly logged: { readonly message: string; readonly fields: unknown }[] = []
  readonly environment: Environment
  readonly #links: NatsLink[] = []

  constructor() {
    this.environment = realEnvironment({ log: (_level, message, fields) => this.logged.push({ message, fields }) })
  }

  async open(config: NatsConfig, options: OpenOptions = {}): Promise<NatsLink> {
    const { environment } = this
    const link = await connectNats(config, {
      name: 'test',
      environment,
      log: (...line) => environment.log(...line),
      readSecret: (file) => this.#read(file),
      onError: (error) => this.errors.push(error),
      ...options,
      job: jobId(options.job ?? 'job'),
    })
    this.#links.push(link)
    return link
  }

  /** Everything reported or logged, as text: where no secret may be. */
  get words(): string {
    return JSON.stringify([this.errors.map(String), this.logged])
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.close()))
  }

  #read(file: string): string {
    const content = this.secrets.get(file)
    if (content === undefined) throw new Error(`there is no ${file}`)
    return content
  }
}

export function addressOf(subject: string): PeerAddress {
  return { slot: slotId('1#0'), subject }
}

/** The code of what `promise` rejects with, and its words. */
export async function rejection(promise: Promise<unknown>): Promise<{ readonly code: string; readonly words: string }> {
  try {
    await promise
  } catch (error) {
    return { code: (error as MillraceError).code, words: String(error) }
  }
  return { code: 'none', words: 'it was fulfilled' }
}
