// Failpoints of a real process: `<name>:<kill|throw>:<n>` acts at the nth time the place is passed. For kill tests only; read from
// MILLRACE_FAILPOINTS by the command.

import type { Failpoints } from '../base/environment.ts'
import { failpointNames } from '../base/failpoints.ts'
import type { FailpointName } from '../base/failpoints.ts'

export interface FailpointRule {
  readonly name: FailpointName
  readonly action: 'kill' | 'throw'
  /** 1 is the first time. */
  readonly time: number
}

export type FailpointPlan = readonly FailpointRule[]

/** Throws for a name or action that there is not: a failpoint that is never met would make a test green for nothing. */
export function parseFailpoints(text: string): FailpointPlan {
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const [name, action, time = '1'] = part.split(':')
      if (!failpointNames.includes(name as FailpointName))
        throw new Error(`no failpoint ${name}; there are: ${failpointNames.join(', ')}`)
      if (action !== 'kill' && action !== 'throw') throw new Error(`a failpoint can kill or throw, not ${action}`)
      return { name: name as FailpointName, action, time: Number(time) }
    })
}

/** `kill` ends the whole process at once, as SIGKILL does. */
export function plannedFailpoints(plan: FailpointPlan, kill: () => void): Failpoints {
  const passed = new Map<FailpointName, number>()
  return {
    hit: (name) => {
      if (plan.length === 0) return
      const times = (passed.get(name) ?? 0) + 1
      passed.set(name, times)
      const rule = plan.find((candidate) => candidate.name === name && candidate.time === times)
      if (rule?.action === 'kill') kill()
      if (rule?.action === 'throw') throw new Error(`failpoint ${name}, time ${times}`)
    },
  }
}
