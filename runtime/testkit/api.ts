// What a test of a process function, a source or a sink imports from 'millrace/testkit'.

// One operator in the test's hand: records, watermarks and time go in, output, snapshots and failures come out.
export { openHarness } from '../operators/harness.ts'
export type { Emitted, HarnessOptions, HarnessSnapshot, OperatorHarness } from '../operators/harness.ts'
export { keyedProcessOperator, processOperator } from './function-operators.ts'
export { operatorOf } from './stream-operator.ts'
export { broadcastProcessOperator, keyedBroadcastProcessOperator } from '../operators/broadcast-process.ts'
export { coProcessOperator } from '../operators/co-process.ts'
export { keyedCoProcessOperator } from '../operators/keyed-co-process.ts'

// What every source and sink must do, as claims for any test runner.
export { plainSinkClaims, sinkClaims, sourceClaims } from '../connectors/conformance.ts'
export type { Claim, SinkCase, SourceCase } from '../connectors/conformance.ts'

// A whole job in one thread, with time, failures, savepoints and rescaling in the test's hand.
export { MiniCluster, openMiniCluster } from './mini-cluster.ts'
export type { MiniClusterOptions, StartOptions } from './mini-cluster.ts'
export type { ArmedFailpoint } from './planned-failpoints.ts'
export type { ClusterLogLine } from './test-process.ts'
export type { Savepoint } from './test-savepoint.ts'
export { failpointNames } from '../base/failpoints.ts'
export type { FailpointName } from '../base/failpoints.ts'
export type { JobOutcome } from '../coordinator/coordinator-contract.ts'

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
