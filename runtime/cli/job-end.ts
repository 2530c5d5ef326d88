// What the end of a job, as HEAD has it, is to commands that wait for it.

import type { HeadSummary, ManifestResource } from '../rest/resources.ts'
import type { SnapshotWish } from './snapshot-request.ts'

/** There is an end, and all that it may commit is committed. */
export function isOver({ end, unconfirmed }: Pick<HeadSummary, 'end' | 'unconfirmed'>): boolean {
  // A job that was drained is stopped until all is committed, and then finished.
  const isDraining = end.kind === 'stopped' && end.savepoint.drained
  return end.kind !== 'none' && unconfirmed === null && !isDraining
}

/** The savepoint of an end of this very kind, whoever has asked for it: what is wished for has happened. */
export function savepointOfWishedEnd(end: HeadSummary['end'], { mode }: SnapshotWish): ManifestResource | undefined {
  const savepoint = end.kind === 'stopped' ? end.savepoint : end.kind === 'finished' ? end.drained : null
  if (savepoint === null || mode !== (savepoint.drained ? 'drain' : 'stop')) return undefined
  return savepoint
}

/** Behind the job or its start. */
export function endWords(end: HeadSummary['end']): string {
  switch (end.kind) {
    case 'none':
      return 'has not ended'
    case 'stopped':
      return `was stopped with ${end.savepoint.path}`
    case 'finished':
      return end.drained === null ? 'has finished' : `was drained with ${end.drained.path}, and has finished`
    case 'failed':
      return `has failed: ${end.reason}`
    case 'suspended':
      return 'was suspended'
    case 'cancelled':
      return 'was cancelled'
    default:
      return end satisfies never
  }
}
