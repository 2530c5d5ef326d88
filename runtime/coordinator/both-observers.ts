import type { CoordinatorObserver } from './coordinator-contract.ts'

/** Tells `first` and then `second` of everything. */
export function bothObservers(first: CoordinatorObserver, second: CoordinatorObserver): Required<CoordinatorObserver> {
  return {
    began: (head, restorePoint) => {
      first.began?.(head, restorePoint)
      second.began?.(head, restorePoint)
    },
    adopted: (adoption) => {
      first.adopted?.(adoption)
      second.adopted?.(adoption)
    },
    rescaled: (parallelism) => {
      first.rescaled?.(parallelism)
      second.rescaled?.(parallelism)
    },
    running: () => {
      first.running?.()
      second.running?.()
    },
    checkpointCompleted: (completed) => {
      first.checkpointCompleted?.(completed)
      second.checkpointCompleted?.(completed)
    },
    checkpointFailed: (failed) => {
      first.checkpointFailed?.(failed)
      second.checkpointFailed?.(failed)
    },
    restarting: (failure) => {
      first.restarting?.(failure)
      second.restarting?.(failure)
    },
    gaveUp: (failure) => {
      first.gaveUp?.(failure)
      second.gaveUp?.(failure)
    },
    ended: (outcome) => {
      first.ended?.(outcome)
      second.ended?.(outcome)
    },
  }
}
