// How the sinks of the ledger server reach it: by real sockets, or by whatever a test or the simulation gives them.

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** JSON; empty for none. */
  readonly body: string
}

export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

/** Resolves with whatever was answered; rejects when there was no answer, or `signal` was aborted. The call may have landed then. */
export type HttpExchange = (request: HttpRequest, signal: AbortSignal) => Promise<HttpAnswer>
