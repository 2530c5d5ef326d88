// Slices of a snapshot's async part: bounded by the same budget as processing, resumed in later turns.

import type { Environment } from '../base/environment.ts'
import type { Slices } from '../state/contract.ts'

export function slicesOf(environment: Environment): Slices {
  const { budget, executor } = environment
  return {
    begin: () => budget.begin(),
    shouldYield: () => budget.shouldYield(),
    nextTurn: () => new Promise((resolve) => executor.post(resolve)),
  }
}
