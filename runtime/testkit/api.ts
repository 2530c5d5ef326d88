// What a test of a process function, a source or a sink imports from 'millrace/testkit'.

// One operator in the test's hand: records, watermarks and time go in, output, snapshots and failures come out.
export { openHarness } from '../operators/harness.ts'
export type { Emitted, HarnessOptions, HarnessSnapshot, OperatorHarness } from '../operators/harness.ts'
export { keyedProcessOperator, processOperator } from './function-operators.ts'

// What every source and sink must do, as claims for any test runner.
export { sinkClaims, sourceClaims } from '../connectors/conformance.ts'
export type { Claim, SinkCase, SourceCase } from '../connectors/conformance.ts'

// A world that moves only when the test says so.
export {
  ManualClock,
  ManualExecutor,
  ManualFailpoints,
  manualEnvironment,
  SeededRandom,
  settlePromises,
} from './manual-clock.ts'
export type { LogLine, ManualEnvironment } from './manual-clock.ts'
export { MemoryFiles } from '../storage/memory-files.ts'
export type { FileFault, FileFaults, FileOperation } from '../storage/memory-files.ts'
