import { describe, expect, it } from 'vitest'
import { parseFailpoints, plannedFailpoints } from './failpoint-plan.ts'

describe('failpoints of a real process', () => {
  it('act at the time that they name, once, and each in its own way', () => {
    const acts: string[] = []
    const plan = parseFailpoints('task.close:hold:2,task.finish:throw,task.close:kill:3,task.close:hold:4')
    const failpoints = plannedFailpoints(plan, {
      kill: () => acts.push('kill'),
      hold: (name) => acts.push(`hold ${name}`),
    })
    for (let time = 1; time <= 5; time++) failpoints.hit('task.close')
    expect(acts).toEqual(['hold task.close', 'kill', 'hold task.close'])
    expect(() => failpoints.hit('task.finish')).toThrow('failpoint task.finish, time 1')
    failpoints.hit('task.finish')
    failpoints.hit('task.process')
    expect(acts).toHaveLength(3)
  })

  it('that there are not, and what they cannot do, are refused: never met they would make a test green for nothing', () => {
    expect(() => parseFailpoints('task.closed:kill:1')).toThrow(/no failpoint task\.closed; there are: .*task\.close/)
    expect(() => parseFailpoints('task.close:stop:1')).toThrow('a failpoint can kill, throw, hold, not stop')
    expect(parseFailpoints('')).toEqual([])
  })
})
