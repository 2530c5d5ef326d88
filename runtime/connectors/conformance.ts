// What a source or sink must do to keep the promise, as claims that any test runner can run: `for (const claim of claims) it(claim.name, claim.run)`.

export interface Claim {
  readonly name: string
  /** Rejects with a description of what was wrong. */
  readonly run: () => Promise<void>
}

export { sourceClaims } from './conformance-source.ts'
export type { SourceCase } from './conformance-source-world.ts'
export { sinkClaims } from './conformance-sink.ts'
export { plainSinkClaims } from './conformance-plain-sink.ts'
export type { SinkCase } from './conformance-sink-support.ts'
