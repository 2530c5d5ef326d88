// What a test of a job, an operator or a connector imports from 'millrace/testkit'.

export { openHarness } from '../operators/harness.ts'
export { sinkClaims, sourceClaims } from '../connectors/conformance.ts'
export { ManualClock, ManualExecutor, manualEnvironment, settlePromises } from './manual-clock.ts'
