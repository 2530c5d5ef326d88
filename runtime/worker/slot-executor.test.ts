import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { SlotExecutor } from './slot-executor.ts'

describe('the turns of a slot', () => {
  it('give each task one slice, in the order in which they asked, each with a budget of its own', () => {
    const story: string[] = []
    const budget = { begin: () => void story.push('slice'), shouldYield: () => false }
    const environment = manualEnvironment({ budget })
    const executor = new SlotExecutor(environment)
    const task = (name: string, slices: number) => ({
      run: () => {
        story.push(name)
        return --slices > 0 ? ('again' as const) : ('wait' as const)
      },
    })
    const [a, b] = [task('a', 2), task('b', 1)]
    executor.wake(a)
    executor.wake(b)
    executor.wake(a)
    expect(environment.executor.waiting).toBe(1)
    environment.executor.runAll()
    expect(story).toEqual(['slice', 'a', 'slice', 'b', 'slice', 'a'])
  })

  it('run a task again that is woken while it runs', () => {
    const environment = manualEnvironment()
    const executor = new SlotExecutor(environment)
    let runs = 0
    const task = {
      run: () => {
        if (++runs === 1) executor.wake(task)
        return 'wait' as const
      },
    }
    executor.wake(task)
    environment.executor.runAll()
    expect(runs).toBe(2)
  })

  it('end at once when the slot is closed', () => {
    const environment = manualEnvironment()
    const executor = new SlotExecutor(environment)
    let runs = 0
    const task = { run: () => (runs++, 'wait' as const) }
    executor.wake(task)
    executor.close()
    executor.wake(task)
    environment.executor.runAll()
    expect(runs).toBe(0)
  })
})
