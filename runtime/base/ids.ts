// Branded identities: two numbers of different meaning cannot be swapped.

declare const brand: unique symbol
export type Brand<T, Name extends string> = T & { readonly [brand]: Name }

/** `namespace/name` of the manifest, or the job file's name, plus `.2`, `.3` … for later jobs of the same name. */
export type JobId = Brand<string, 'JobId'>
/** Which start of the job this is; chosen by whoever starts it; rises. */
export type Start = Brand<number, 'Start'>
/** The coordinator's fence: raised in HEAD before a coordinator does anything else. */
export type Incarnation = Brand<number, 'Incarnation'>
/** Rises strictly for the life of the job; blocks are reserved in HEAD before use. */
export type CheckpointId = Brand<number, 'CheckpointId'>
/** Stable across processes that load the same job: the uid, or the generated uid, of the vertex's first operator. */
export type VertexId = Brand<string, 'VertexId'>
/** 0-based index of an edge in the job graph. */
export type EdgeId = Brand<number, 'EdgeId'>
/** 0 ≤ subtask < parallelism of its vertex. */
export type SubtaskIndex = Brand<number, 'SubtaskIndex'>
/** 0 ≤ group < max parallelism. */
export type KeyGroup = Brand<number, 'KeyGroup'>
/** A slot's thread; a restart gets a fresh thread and so a fresh SlotId: `<slot number>#<life>`. */
export type SlotId = Brand<string, 'SlotId'>
export type RequestId = Brand<string, 'RequestId'>

export const jobId = (value: string): JobId => value as JobId
export const start = (value: number): Start => value as Start
export const incarnation = (value: number): Incarnation => value as Incarnation
export const checkpointId = (value: number): CheckpointId => value as CheckpointId
export const vertexId = (value: string): VertexId => value as VertexId
export const edgeId = (value: number): EdgeId => value as EdgeId
export const subtaskIndex = (value: number): SubtaskIndex => value as SubtaskIndex
export const keyGroup = (value: number): KeyGroup => value as KeyGroup
export const slotId = (value: string): SlotId => value as SlotId
export const requestId = (value: string): RequestId => value as RequestId

/** One try of a subtask: the incarnation that deployed it and a number that rises within that incarnation. */
export interface Attempt {
  readonly incarnation: Incarnation
  readonly number: number
}

export interface TaskId {
  readonly vertex: VertexId
  readonly subtask: SubtaskIndex
}

/** `<vertex>/<subtask>`: the key under which maps hold a subtask. */
export type TaskKey = Brand<string, 'TaskKey'>

/** One channel: an edge between one producer subtask and one consumer subtask. */
export interface ChannelId {
  readonly edge: EdgeId
  readonly producer: SubtaskIndex
  readonly consumer: SubtaskIndex
}

export function taskKey(task: TaskId): TaskKey {
  return `${task.vertex}/${task.subtask}` as TaskKey
}

export function formatAttempt(attempt: Attempt): string {
  return `${attempt.incarnation}.${attempt.number}`
}

export function sameAttempt(left: Attempt, right: Attempt): boolean {
  return left.number === right.number && left.incarnation === right.incarnation
}

/** `<edge>:<producer>><consumer>` */
export function formatChannel(channel: ChannelId): string {
  return `${channel.edge}:${channel.producer}>${channel.consumer}`
}
