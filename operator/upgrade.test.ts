import { describe, expect, it } from 'vitest'
import type { CoordinatorFact } from './contract.ts'
import { chooseClose, silenceMs } from './upgrade.ts'
import type { ToClose } from './upgrade.ts'

const running: NonNullable<ToClose['coordinator']> = {
  state: 'running',
  end: 'none',
  completedInStart: true,
  checkpointing: 'on',
  restorePoint: { kind: 'checkpoint', path: 's3://b/chk-7', id: 7, madeBy: 1, start: 1, unconfirmed: false },
}
const never: Partial<CoordinatorFact> = {
  completedInStart: false,
  restorePoint: { kind: 'empty', start: 1, unconfirmed: false },
}

function how(more: Partial<ToClose>): string {
  const choice = chooseClose({
    mode: 'last-state',
    coordinator: running,
    isStable: true,
    silentMs: 0,
    isOverdue: false,
    isRestore: false,
    ...more,
  })
  return choice.how === 'block' ? `block ${choice.reason}` : choice.how
}

/** O13. Rows: what the job is; columns: the mode of the spec that is to run. */
describe('how HEAD is closed', () => {
  const silent = { coordinator: undefined, silentMs: silenceMs }
  const rows: readonly (readonly [string, Partial<ToClose>, string, string, string])[] = [
    // what the job is, stateless, last-state, savepoint
    ['running', {}, 'close', 'close', 'stop'],
    ['restarting', { coordinator: { ...running, state: 'restarting' } }, 'close', 'close', 'stop'],
    [
      'starting again, once stable',
      { coordinator: { ...running, ...never, state: 'starting' } },
      'close',
      'close',
      'stop',
    ],
    ['failed', { coordinator: { ...running, state: 'ended', end: 'failed' } }, 'read', 'read', 'read'],
    ['finished', { coordinator: { ...running, state: 'ended', end: 'finished' } }, 'read', 'read', 'read'],
    ['stopped by somebody', { coordinator: { ...running, state: 'ended', end: 'stopped' } }, 'read', 'read', 'read'],
    ['without a coordinator for a moment', { coordinator: undefined }, 'wait', 'wait', 'block CoordinatorUnreachable'],
    ['without a coordinator', silent, 'admin', 'admin', 'block CoordinatorUnreachable'],
    [
      'running, never completed a checkpoint',
      { coordinator: { ...running, ...never }, isStable: false },
      'close',
      'close',
      'stop',
    ],
    [
      'running, never completed one, for as long as the deadline',
      { coordinator: { ...running, ...never }, isStable: false, isOverdue: true },
      'close',
      'close',
      'close',
    ],
    [
      'restarting, never completed a checkpoint',
      { coordinator: { ...running, ...never, state: 'restarting' }, isStable: false },
      'close',
      'close',
      'close',
    ],
    ['unreachable, never completed a checkpoint', { ...silent, isStable: false }, 'admin', 'admin', 'admin'],
    [
      'without checkpointing',
      { coordinator: { ...running, ...never, checkpointing: 'off' } },
      'close',
      'block NothingToRestore',
      'stop',
    ],
    [
      'without checkpointing, begun at a savepoint',
      { coordinator: { ...running, completedInStart: false, checkpointing: 'off' } },
      'close',
      'block NothingToRestore',
      'stop',
    ],
    [
      'stable, and nobody knows whether it takes checkpoints',
      { coordinator: { ...running, ...never, checkpointing: undefined } },
      'close',
      'block NothingToRestore',
      'stop',
    ],
    [
      'not stable, and nobody knows whether it takes checkpoints',
      { coordinator: { ...running, ...never, checkpointing: undefined }, isStable: false },
      'close',
      'close',
      'stop',
    ],
    [
      'without checkpointing, but one was asked for',
      { coordinator: { ...running, checkpointing: 'off' } },
      'close',
      'close',
      'stop',
    ],
    [
      'without checkpointing, failed',
      { coordinator: { ...running, ...never, checkpointing: 'off', state: 'ended', end: 'failed' } },
      'read',
      'read',
      'read',
    ],
  ]
  it.each(rows)('%s', (_, facts, stateless, lastState, savepoint) => {
    expect({
      stateless: how({ ...facts, mode: 'stateless' }),
      'last-state': how({ ...facts, mode: 'last-state' }),
      savepoint: how({ ...facts, mode: 'savepoint' }),
    }).toEqual({ stateless, 'last-state': lastState, savepoint })
  })

  it('for a deletion is to cancel, unless it has ended or nobody answers', () => {
    const forDeletion = (name: string): string => how({ ...rows.find(([row]) => row === name)![1], mode: 'delete' })
    expect(
      [
        'running',
        'restarting',
        'without checkpointing',
        'failed',
        'without a coordinator for a moment',
        'without a coordinator',
      ].map(forDeletion),
    ).toEqual(['cancel', 'cancel', 'cancel', 'read', 'wait', 'admin'])
  })

  it('with what blocks comes what to do', () => {
    for (const [, facts] of rows)
      for (const mode of ['last-state', 'savepoint'] as const) {
        const choice = chooseClose({
          mode,
          coordinator: running,
          isStable: true,
          silentMs: 0,
          isOverdue: false,
          isRestore: false,
          ...facts,
        })
        if (choice.how === 'block') expect(choice.message).toMatch(/set spec\.upgradeMode/i)
      }
  })
})
