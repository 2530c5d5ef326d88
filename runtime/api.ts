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
export { slidingWindows, tumblingWindows } from './operators/window-assigner.ts'
export type { TimeWindow, WindowAssigner } from './operators/window-assigner.ts'
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
