// What a job file imports from 'millrace'.

export { z } from 'zod'
export { boundedOutOfOrderness, monotonic, noWatermarks } from './connectors/watermarks.ts'
export type { WatermarkStrategy } from './connectors/contract.ts'
export { defineJob } from './job/define-job.ts'
export type { FinishedJob, Job, JobOptions } from './job/define-job.ts'
export type { JobEnvironment, SourceOptions } from './job/job-environment.ts'
export type { AggregateOptions, KeyedStream } from './job/keyed-stream.ts'
export type { JobConfig } from './job/settings.ts'
export type { SinkHandle } from './job/sink-handle.ts'
export type { OperatorStream, OutputOptions, Stream } from './job/stream.ts'
export type { WindowedStream, WindowResultOptions } from './job/windowed-stream.ts'
export type { KeyedProcessFunction, StateDeclaration } from './operators/keyed-process.ts'
export { outputTag } from './operators/output-tag.ts'
export type { OutputTag } from './operators/output-tag.ts'
export type { ProcessFunction } from './operators/process.ts'
export type { FiredTimer, KeyedContext, OpenContext, ProcessContext } from './operators/process-context.ts'
export { selfDescribing } from './operators/stream-schema.ts'
export type { SelfDescribing, StreamSchema } from './operators/stream-schema.ts'
export type { Trigger, TriggerContext, TriggerResult, WindowTimers } from './operators/trigger.ts'
export {
  continuousTrigger,
  countTrigger,
  eventTimeTrigger,
  processingTimeTrigger,
  purging,
} from './operators/triggers.ts'
export { globalWindow, sessionWindows, slidingWindows, tumblingWindows } from './operators/window-assigner.ts'
export type {
  GlobalWindow,
  SessionWindows,
  SlidingWindows,
  TimeWindow,
  WindowAssigner,
} from './operators/window-assigner.ts'
export type { WindowContext, WindowResultFunction } from './operators/window-contents.ts'
export type { Key } from './record/contract.ts'
export { MAX_WATERMARK, MIN_WATERMARK } from './record/element.ts'
export type {
  AggregateFunction,
  AggregatingState,
  DeepReadonly,
  ListState,
  MapState,
  ReducingState,
  TimeDomain,
  Timers,
  ValueState,
} from './state/contract.ts'
export { aggregatingState, listState, mapState, reducingState, valueState } from './state/descriptors.ts'
export type { AsyncContext, AsyncOptions, AsyncOrder, AsyncRetries } from './operators/async-options.ts'
export type { Counter, Histogram, UserMetrics } from './operators/user-metrics-contract.ts'
export type {
  BroadcastConnectedStream,
  BroadcastStream,
  KeyedBroadcastConnectedStream,
} from './job/broadcast-stream.ts'
export type { ConnectedStreams } from './job/connected-stream.ts'
export type { BoundedIntervalJoin, IntervalJoin, IntervalOptions } from './job/interval-joined-stream.ts'
export type { HalfKeyedJoin, KeyedJoin, UnkeyedJoin, WindowedJoin } from './job/joined-stream.ts'
export type { KeyedConnectedStreams } from './job/keyed-connected-stream.ts'
export type {
  BroadcastProcessFunction,
  BroadcastReadContext,
  BroadcastWriteContext,
  KeyedBroadcastProcessFunction,
  KeyedBroadcastReadContext,
  KeyedBroadcastWriteContext,
} from './operators/broadcast-process.ts'
export type { BroadcastDeclaration, ReadonlyMapState } from './operators/broadcast-state.ts'
export type { CoGroupFunction, JoinContext, JoinFunction } from './operators/co-group-contents.ts'
export type { CoProcessFunction } from './operators/co-process.ts'
export type { IntervalJoinContext, IntervalJoinFunction } from './operators/interval-join.ts'
export type { KeyedCoProcessFunction } from './operators/keyed-co-process.ts'
