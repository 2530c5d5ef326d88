import { describe, expect, it } from 'vitest'
import { MillraceError } from '../base/errors.ts'
import { checkpointId } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { PreparedTransaction, Sink, SinkContext } from '../connectors/contract.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import { openHarness } from './harness.ts'
import type { HarnessSnapshot, OperatorHarness } from './harness.ts'
import { SinkOperator } from './sink-operator.ts'

const deadlineMs = 60_000
const settings = { commitDeadlineMs: deadlineMs, onUnknownCommit: 'stop', mayKeepState: true } as const
const id = checkpointId

/** An external system with transactions, and a sink into it whose every answer a test can hold back or spoil. */
class External {
  readonly committed = new Map<string, unknown>()
  readonly events: string[] = []
  /** Answers of the next commits; undefined: succeed. */
  commitFailures: (Error | undefined)[] = []
  /** Commits that never answer. */
  silent = false
  /** Pre-commits wait until their checkpoint is released. */
  hold: number[] = []
  prepareFailure: { readonly checkpoint: number; readonly error: Error } | undefined
  context: SinkContext | undefined
  #releases = new Map<number, () => void>()

  release(checkpoint: number): void {
    this.#releases.get(checkpoint)?.()
  }

  async #held(checkpoint: number): Promise<void> {
    if (!this.hold.includes(checkpoint)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#releases.set(checkpoint, resolve)
    await promise
  }

  async #prepare(
    checkpoint: number,
    values: readonly unknown[],
    end: boolean,
  ): Promise<readonly PreparedTransaction[]> {
    await this.#held(checkpoint)
    if (this.prepareFailure?.checkpoint === checkpoint) throw this.prepareFailure.error
    return values.length === 0 ? [] : [{ transaction: `tx-${checkpoint}${end ? '-last' : ''}`, payload: values }]
  }

  async #commit(committables: readonly Committable[]): Promise<void> {
    this.events.push(`commit ${committables.map(({ transaction }) => transaction).join(' ')}`)
    const failure = this.commitFailures.shift()
    if (this.silent) await Promise.withResolvers<void>().promise
    if (failure !== undefined) throw failure
    for (const { transaction, payload } of committables) this.committed.set(transaction, payload)
  }

  twoPhase(): Sink<unknown> {
    return {
      ...this.plain(),
      createCommitter: () => ({
        commit: (list) => this.#commit(list),
        list: async () => [],
        abort: async () => undefined,
      }),
    }
  }

  plain(): Sink<unknown> {
    return {
      name: 'external',
      createWriter: (context) => {
        this.context = context
        let values: unknown[] = []
        return {
          open: async () => void this.events.push('open writer'),
          write: (value) => values.push(value),
          prepareCommit: (checkpoint, end) => {
            const cut = values
            values = []
            return this.#prepare(checkpoint, cut, end)
          },
          snapshot: (checkpoint) => {
            const { description } = typeInfoOf<unknown>('writer').row
            return {
              redistribution: 'union',
              codec: description,
              items: [new TextEncoder().encode(String(checkpoint))],
            }
          },
          close: async () => void this.events.push('close writer'),
        }
      },
    }
  }
}

interface Opened {
  readonly harness: OperatorHarness
  readonly external: External
  readonly environment: ManualEnvironment
}

async function open(
  external = new External(),
  restored: readonly HarnessSnapshot[] = [],
  environment = manualEnvironment(),
): Promise<Opened> {
  const operator = new SinkOperator(external.twoPhase(), settings)
  return { harness: await openHarness({ operator, restored, environment }), external, environment }
}

const listed = (snapshot: HarnessSnapshot): string[] =>
  (snapshot.part.committables ?? []).map(({ transaction }) => transaction)

describe('the sink operator', () => {
  it('cuts a transaction at the barrier: what is written while it is being prepared belongs to the next', async () => {
    const { harness, external } = await open()
    external.hold = [1]
    harness.process('a')
    const first = harness.snapshot(id(1))
    harness.process('b')
    external.release(1)
    expect((await first).part.committables).toEqual([{ checkpoint: 1, transaction: 'tx-1', payload: ['a'] }])
    expect(listed(await harness.snapshot(id(2)))).toEqual(['tx-1', 'tx-2'])
  })

  it('holds records back while its writer has no room, until the writer wakes the task', async () => {
    const external = new External()
    let ready = true
    const plain = external.plain()
    const sink: Sink<unknown> = {
      ...plain,
      createWriter: (context) => Object.defineProperty(plain.createWriter(context), 'ready', { get: () => ready }),
    }
    const operator = new SinkOperator(sink, settings)
    expect(operator.ready).toBe(true)
    const { environment } = await openHarness({ operator })
    ready = false
    expect(operator.ready).toBe(false)
    const before = environment.executor.waiting
    external.context!.wake()
    expect(environment.executor.waiting).toBe(before + 1)
    ready = true
    expect(operator.ready).toBe(true)
  })

  it('commits on the permit only, and lists a transaction until it is committed', async () => {
    const { harness, external } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    expect(external.committed.size).toBe(0)
    await harness.complete(id(1))
    expect([...external.committed.keys()]).toEqual(['tx-1'])
    harness.process('b')
    expect(listed(await harness.snapshot(id(2)))).toEqual(['tx-2'])
    expect(harness.metrics.values.get('commits_total')).toBe(1)
  })

  it('keeps a transaction of an aborted checkpoint and commits it with the next completed one', async () => {
    const { harness, external } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    harness.process('b')
    expect(listed(await harness.snapshot(id(2)))).toEqual(['tx-1', 'tx-2'])
    await harness.complete(id(2))
    expect([...external.committed.keys()]).toEqual(['tx-1', 'tx-2'])
  })

  it('commits nothing twice when a late permit for an older checkpoint comes', async () => {
    const { harness, external } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    harness.process('b')
    await harness.snapshot(id(2))
    await Promise.all([harness.complete(id(2)), harness.complete(id(1)), harness.complete(id(2))])
    expect(external.events.filter((event) => event.startsWith('commit'))).toEqual(['commit tx-1', 'commit tx-2'])
  })

  it('does not commit what a later checkpoint has pre-committed', async () => {
    const { harness, external } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    harness.process('b')
    await harness.snapshot(id(2))
    await harness.complete(id(1))
    expect([...external.committed.keys()]).toEqual(['tx-1'])
  })

  it('lets no snapshot overtake an earlier one that is still being prepared', async () => {
    const { harness, external } = await open()
    external.hold = [1]
    harness.process('a')
    const first = harness.snapshot(id(1))
    harness.process('b')
    const second = harness.snapshot(id(2))
    let done = false
    void second.then(() => (done = true))
    await settlePromises()
    expect(done).toBe(false)
    external.release(1)
    expect(listed(await first)).toEqual(['tx-1'])
    expect(listed(await second)).toEqual(['tx-1', 'tx-2'])
  })

  it('lets an asynchronous write error surface before the acknowledgement, also of every later checkpoint', async () => {
    const { harness, external } = await open()
    external.prepareFailure = { checkpoint: 1, error: new Error('broker gone') }
    harness.process('a')
    await expect(harness.snapshot(id(1))).rejects.toMatchObject({ code: 'MR-J61' })
    expect(harness.failures).toHaveLength(1)
    await expect(harness.snapshot(id(2))).rejects.toMatchObject({ code: 'MR-J61' })
  })

  it('refuses transactions of a sink that has no committer, for good', async () => {
    const harness = await openHarness({ operator: new SinkOperator(new External().plain(), settings) })
    harness.process('a')
    await expect(harness.snapshot(id(1))).rejects.toMatchObject({ code: 'MR-J74', retry: false })
    expect(String(harness.failures)).toMatch(/MR-J74.*operator 'tested'/)
  })

  it('gives the writer’s own failures to the task under the operator’s name', async () => {
    const { harness, external } = await open()
    external.context?.fail(new Error('socket closed'))
    expect(String(harness.failures[0])).toContain("operator 'tested'")
  })

  it('says to the writer that the input has ended, and keeps the writer’s state', async () => {
    const { harness, external } = await open()
    harness.process('a')
    harness.finish()
    const snapshot = await harness.snapshot(id(1))
    expect(listed(snapshot)).toEqual(['tx-1-last'])
    const after = await open(new External(), [{ ...snapshot, part: { operatorState: snapshot.part.operatorState! } }])
    expect(after.external.context?.restored.items.map((item) => new TextDecoder().decode(item.bytes))).toEqual(['1'])
    expect(external.committed.size).toBe(0)
  })

  it('commits what the restore point permits before the writer opens', async () => {
    const first = await open()
    first.harness.process('a')
    await first.harness.snapshot(id(1))
    first.harness.process('b')
    const restored = [await first.harness.snapshot(id(2))]
    const after = await open(first.external, restored)
    expect(after.external.events).toEqual(['open writer', 'commit tx-1', 'commit tx-2', 'open writer'])
    expect(listed(await after.harness.snapshot(id(3)))).toEqual([])
  })

  it('refuses to drop restored transactions when the sink has become a plain one', async () => {
    const { harness, external } = await open()
    harness.process('a')
    const restored = [await harness.snapshot(id(1))]
    const plain = new SinkOperator(external.plain(), settings)
    await expect(openHarness({ operator: plain, restored })).rejects.toMatchObject({ code: 'MR-J63' })
  })

  it('passes the failpoints in their order', async () => {
    const { harness, environment } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    await harness.complete(id(1))
    expect(environment.failpoints.hits).toEqual([
      'sink.preCommit.before',
      'sink.preCommit.after',
      'sink.commit.before',
      'sink.commit.middle',
      'sink.commit.after',
    ])
  })

  it('leaves the rest of several transactions listed when it dies in the middle of their commit', async () => {
    const { harness, external, environment } = await open()
    harness.process('a')
    await harness.snapshot(id(1))
    harness.process('b')
    await harness.snapshot(id(2))
    environment.failpoints.throwAt('sink.commit.middle', new Error('killed'))
    await expect(harness.complete(id(2))).rejects.toThrow('killed')
    expect([...external.committed.keys()]).toEqual(['tx-1'])
    expect(listed(await harness.snapshot(id(3)))).toEqual(['tx-2'])
  })
})

describe('a commit that fails', () => {
  async function prepared(): Promise<Opened> {
    const opened = await open()
    opened.harness.process('a')
    await opened.harness.snapshot(id(1))
    return opened
  }

  it('is tried again with back-off until it succeeds', async () => {
    const { harness, external, environment } = await prepared()
    external.commitFailures = [
      new Error('busy'),
      new MillraceError('MR-N99', { meaning: '', who: 'user', retry: true, remedy: '' }, ''),
      undefined,
    ]
    const completing = harness.complete(id(1))
    await environment.clock.advanceSettled(5_000)
    await completing
    expect(external.events.filter((event) => event === 'commit tx-1')).toHaveLength(3)
    expect(harness.metrics.values.get('commit_retries_total')).toBe(2)
    expect(environment.clock.waiting).toBe(0)
  })

  it('stops the job at the deadline and is still listed', async () => {
    const { harness, external, environment } = await prepared()
    external.commitFailures = Array.from({ length: 1_000 }, () => new Error('down'))
    const completing = expect(harness.complete(id(1))).rejects.toMatchObject({ code: 'MR-J60', retry: false })
    await environment.clock.advanceSettled(deadlineMs)
    await completing
    expect(listed(await harness.snapshot(id(2)))).toEqual(['tx-1'])
  })

  it('has a deadline also when the external system never answers', async () => {
    const { harness, external, environment } = await prepared()
    external.silent = true
    const completing = expect(harness.complete(id(1))).rejects.toMatchObject({ code: 'MR-J60' })
    await environment.clock.advanceSettled(deadlineMs)
    await completing
  })

  it('is not tried again when the external system has forgotten the transaction', async () => {
    const { harness, external } = await prepared()
    const forgotten = new MillraceError(
      'MR-N98',
      { meaning: 'unknown transaction', who: 'user', retry: false, remedy: '' },
      '',
    )
    external.commitFailures = [forgotten]
    await expect(harness.complete(id(1))).rejects.toMatchObject({ code: 'MR-J65', retry: false, cause: forgotten })
  })

  it('ends when the task is closed, leaving no timer', async () => {
    const { harness, external, environment } = await prepared()
    external.commitFailures = [new Error('down')]
    const completing = expect(harness.complete(id(1))).rejects.toMatchObject({ code: 'MR-J62' })
    await settlePromises()
    await harness.close()
    await completing
    expect(environment.clock.waiting).toBe(0)
  })
})
