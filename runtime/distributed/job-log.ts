// What a coordinator's log tells of its job when all is well. Failures are logged where they are met.

import type { Environment } from '../base/environment.ts'
import type { CoordinatorObserver } from '../coordinator/coordinator-contract.ts'
import type { Head, RestorePoint } from '../storage/head-contract.ts'

/** Whoever reads the log of a night finds in it when the job ran again, and from where. */
export function jobLog(
  log: Environment['log'],
): Pick<Required<CoordinatorObserver>, 'began' | 'running' | 'rescaled' | 'checkpointCompleted'> {
  let begun: Head | undefined
  return {
    began: (head, restorePoint) => {
      begun = head
      log('info', 'the job begins', { ...placeOf(head), from: pathOf(restorePoint) })
    },
    running: () => log('info', 'all subtasks run', begun === undefined ? {} : placeOf(begun)),
    rescaled: (parallelism) => log('info', 'the job is rescaled', { parallelism }),
    checkpointCompleted: ({ manifest: { kind, id, path }, collected: { request }, durationMs }) => {
      // Checkpoints are too many: /v1/checkpoints and the metrics have them.
      if (kind === 'savepoint') log('info', 'a savepoint completed', { id, path, durationMs, request })
    },
  }
}

function placeOf({ start, incarnation, parallelism, rescaledTo }: Head): Readonly<Record<string, unknown>> {
  return { start, incarnation, parallelism: rescaledTo ?? parallelism }
}

function pathOf(point: RestorePoint): string {
  return point.kind === 'empty' ? 'the beginning' : point.manifest.path
}
