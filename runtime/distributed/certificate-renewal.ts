// The certificate of the coordinator's servers, for workers and for REST, which outlive it: whoever made it writes the next one into the
// same files long before it ends.

import type { Environment, Timer } from '../base/environment.ts'

/** How often it is read anew, ms. */
export const renewalMs = 10 * 60_000

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface CertificateRenewalOptions {
  readonly read: () => Promise<Certificate>
  /** Connections that are open stay as they are. Throws for what is no certificate, or not with this key. */
  readonly servers: readonly { renewCertificate(renewed: Certificate): void }[]
  readonly environment: Pick<Environment, 'clock' | 'log'>
}

export class CertificateRenewal {
  readonly #options: CertificateRenewalOptions
  #timer: Timer | undefined
  #closed = false

  constructor(options: CertificateRenewalOptions) {
    this.#options = options
    this.#arm()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  #arm(): void {
    if (!this.#closed) this.#timer = this.#options.environment.clock.timer(renewalMs, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const { read, servers, environment } = this.#options
    try {
      const renewed = await read()
      for (const server of servers) server.renewCertificate(renewed)
    } catch (error) {
      // Such as when one of its two files is written and the other is not yet.
      const fields = { error: String(error) }
      environment.log('warn', 'the certificate could not be read anew; the former one is used on', fields)
    }
    this.#arm()
  }
}
