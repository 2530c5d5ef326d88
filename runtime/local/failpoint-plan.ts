// Failpoints of a real process: `<name>:<kill|throw|hold>:<n>` acts at the nth time the place is passed. For kill tests only; read from
// MILLRACE_FAILPOINTS by the command.

import type { Failpoints } from '../base/environment.ts'
import { failpointNames } from '../base/failpoints.ts'
import type { FailpointName } from '../base/failpoints.ts'

const actions = ['kill', 'throw', 'hold'] as const

export interface FailpointRule {
  readonly name: FailpointName
  readonly action: (typeof actions)[number]
  /** 1 is the first time. */
  readonly time: number
}

export type FailpointPlan = readonly FailpointRule[]

export interface FailpointActions {
  /** Ends the whole process at once, as SIGKILL does. */
  readonly kill: () => void
  /**
   * Says `held at <name>` on its standard error and stops the whole process there (SIGSTOP) until somebody lets it go on (SIGCONT) or kills it.
   * A place is passed within one turn, so that waiting there could hold up nothing less than a thread; the whole process is what a test sees.
   */
  readonly hold: (name: FailpointName) => void
}

/** Throws for a name or action that there is not: a failpoint that is never met would make a test green for nothing. */
export function parseFailpoints(text: string): FailpointPlan {
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const [name, action, time = '1'] = part.split(':')
      if (!failpointNames.includes(name as FailpointName))
        throw new Error(`no failpoint ${name}; there are: ${failpointNames.join(', ')}`)
      if (!actions.includes(action as FailpointRule['action']))
        throw new Error(`a failpoint can ${actions.join(', ')}, not ${action}`)
      return { name: name as FailpointName, action: action as FailpointRule['action'], time: Number(time) }
    })
}

export function plannedFailpoints(plan: FailpointPlan, { kill, hold }: FailpointActions): Failpoints {
  const passed = new Map<FailpointName, number>()
  return {
    hit: (name) => {
      if (plan.length === 0) return
      const times = (passed.get(name) ?? 0) + 1
      passed.set(name, times)
      const rule = plan.find((candidate) => candidate.name === name && candidate.time === times)
      if (rule?.action === 'kill') kill()
      if (rule?.action === 'hold') hold(name)
      if (rule?.action === 'throw') throw new Error(`failpoint ${name}, time ${times}`)
    },
  }
}
