// The only place that formats a subject. All of them stand under `mr.<job>.`, which is what a job's credentials allow.

import type { Attempt, Incarnation, JobId, SlotId, TaskId } from '../base/ids.ts'
import type { PeerAddress } from './contract.ts'

export interface SubtaskAttempt {
  readonly task: TaskId
  readonly attempt: Attempt
}

/** Where a consumer subtask's attempt receives the frames of all its input channels: one subscription (rule 8). */
export function dataAddress(job: JobId, slot: SlotId, subtask: SubtaskAttempt): PeerAddress {
  return { slot, subject: dataSubject(job, subtask) }
}

/** Where a producer subtask's attempt receives the credit of all its output channels: one subscription. */
export function creditAddress(job: JobId, slot: SlotId, subtask: SubtaskAttempt): PeerAddress {
  return { slot, subject: creditSubject(job, subtask) }
}

export function dataSubject(job: JobId, subtask: SubtaskAttempt): string {
  return `mr.${token(job)}.data.${subtaskTokens(subtask)}`
}

export function creditSubject(job: JobId, subtask: SubtaskAttempt): string {
  return `mr.${token(job)}.credit.${subtaskTokens(subtask)}`
}

export interface ControlSubjects {
  /** Where the slot listens. A slot's thread has an id of its own, so nothing sent to a former life reaches it. */
  readonly slot: string
  /** Where that incarnation of the coordinator listens to that slot: what is meant for an older one does not reach it. */
  readonly coordinator: string
}

/** Both directions of the control link between a slot and an incarnation of the coordinator. */
export function controlSubjects(job: JobId, slot: SlotId, incarnation: Incarnation): ControlSubjects {
  const both = `mr.${token(job)}.control.${token(slot)}`
  return { slot: `${both}.slot`, coordinator: `${both}.${incarnation}` }
}

/** Of answers to requests: apart from those of other jobs, as a job's credentials demand. */
export function inboxPrefix(job: JobId): string {
  return `_INBOX_${token(job)}`
}

/** Where a new connection tries out whether its credentials allow the job's subjects. */
export function trialSubject(job: JobId): string {
  return `mr.${token(job)}.trial`
}

/** What a job's credentials must allow to publish and subscribe to. */
export function allowedSubjects(job: JobId): readonly string[] {
  return [`mr.${token(job)}.>`, `${inboxPrefix(job)}.>`]
}

/** The attempt is part of the name, so that nothing sent to a dead attempt reaches the next one. */
function subtaskTokens({ task, attempt }: SubtaskAttempt): string {
  return `${token(task.vertex)}.${task.subtask}.${attempt.incarnation}-${attempt.number}`
}

/** One token of a subject: letters, digits, _ and - stay, every other byte of its UTF-8 becomes `=` and two hexadecimal digits. */
function token(text: string): string {
  let result = ''
  for (const character of text) {
    if (/^[A-Za-z0-9_-]$/.test(character)) result += character
    else for (const byte of new TextEncoder().encode(character)) result += `=${byte.toString(16).padStart(2, '0')}`
  }
  return result
}
