import { describe, expect, it } from 'vitest'
import { InvariantError } from '../base/errors.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import type { Execution } from './execution.ts'
import { SinkSweeps, sweepLostMs, sweepWaitMs } from './sink-sweeps.ts'

/** Two sinks, whose lists the test answers; `kept` is what HEAD says. */
function subject() {
  const environment = manualEnvironment()
  const lists: { readonly uid: string; readonly answer: (error?: Error) => void }[] = []
  const story: string[] = []
  const broken: unknown[] = []
  const state = { kept: new Set<string>() as ReadonlySet<string> | undefined }
  const sweeps = new SinkSweeps({
    environment,
    execution: {} as Execution,
    commits: {
      sinks: ['fast', 'slow'],
      sweep: async (uid, readKept) => {
        const list = Promise.withResolvers<void>()
        const answer = (error?: Error): void => (error === undefined ? list.resolve() : list.reject(error))
        lists.push({ uid, answer })
        if (uid === 'fast') answer()
        await list.promise
        const kept = await readKept()
        story.push(`${uid}: ${kept === undefined ? 'nothing' : `all but ${[...kept].join(' ')}`}`)
      },
    },
    readKept: async () => state.kept,
    onBroken: (error) => void broken.push(error),
  })
  const told = () => environment.lines.map(({ message, fields }) => `${String(fields?.['uid'])}: ${message}`)
  const ofSlow = () => lists.filter(({ uid }) => uid === 'slow')
  return { environment, sweeps, story, broken, state, told, ofSlow }
}

const leftOut = 'slow: a sweep of transactions was left out: its sink has not answered the one before'
const noLonger = 'slow: a sweep of transactions is waited for no longer: its sink does not answer'

describe('a sink that does not answer the sweep of its transactions (rule 24)', () => {
  it('holds up no other sink, and is waited for so long', async () => {
    const { environment, sweeps, story, told } = subject()
    const first = sweeps.sweep()
    await settlePromises()
    expect(story).toEqual(['fast: all but '])
    await environment.clock.advanceSettled(sweepWaitMs)
    await first
    expect(told()).toEqual([noLonger])
    await sweeps.sweep()
    expect(story).toEqual(['fast: all but ', 'fast: all but '])
    expect(told()).toEqual([noLonger, leftOut])
    expect(environment.clock.waiting).toBe(0)
  })

  it('is swept when it does, by what HEAD says then', async () => {
    const { environment, sweeps, story, state, ofSlow } = subject()
    void sweeps.sweep()
    await environment.clock.advanceSettled(sweepWaitMs * 3)
    state.kept = new Set(['t7'])
    ofSlow()[0]!.answer()
    await settlePromises()
    expect(story.slice(1)).toEqual(['slow: all but t7'])
    void sweeps.sweep()
    expect(ofSlow()).toHaveLength(2)
  })

  it('is asked anew when its answer has to be taken for lost, and one that comes after all does nothing', async () => {
    const { environment, sweeps, story, told, ofSlow } = subject()
    void sweeps.sweep()
    await environment.clock.advanceSettled(sweepLostMs - 1)
    await sweeps.sweep()
    expect([ofSlow().length, told()]).toEqual([1, [noLonger, leftOut]])
    await environment.clock.advanceSettled(1)
    void sweeps.sweep()
    await settlePromises()
    expect(ofSlow()).toHaveLength(2)
    ofSlow()[0]!.answer()
    await settlePromises()
    expect(story.at(-1)).toBe('slow: nothing')
    await sweeps.sweep()
    expect(told().at(-1)).toBe(leftOut)
    ofSlow()[1]!.answer()
    await settlePromises()
    expect(story.at(-1)).toBe('slow: all but ')
  })

  it('but fails is told with its error, and asked the next time', async () => {
    const { sweeps, told, ofSlow, environment } = subject()
    const first = sweeps.sweep()
    ofSlow()[0]!.answer(new Error('access denied'))
    await first
    expect(told()).toEqual(['slow: sweeping transactions failed; the next completed checkpoint tries again'])
    expect(environment.lines[0]!.fields).toMatchObject({ error: 'Error: access denied' })
    void sweeps.sweep()
    expect(ofSlow()).toHaveLength(2)
  })

  it('and then meets a broken invariant is loud, also when nobody waits for it any more', async () => {
    const { environment, sweeps, broken, told, ofSlow } = subject()
    void sweeps.sweep()
    await environment.clock.advanceSettled(sweepWaitMs)
    ofSlow()[0]!.answer(new InvariantError('two of one name'))
    await settlePromises()
    expect(broken).toEqual([expect.any(InvariantError)])
    expect(told()).toEqual([noLonger])
  })
})
