// What a source or sink must do to keep the promise, as claims that any test runner can run: `for (const claim of claims) it(claim.name, claim.run)`.

export interface Claim {
  readonly name: string
  /** Rejects with a description of what was wrong. */
  readonly run: () => Promise<void>
}

export { sourceClaims, type SourceCase } from './conformance-source.ts'
export { sinkClaims, type SinkCase } from './conformance-sink.ts'
