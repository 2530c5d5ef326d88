import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, requestId, start } from '../base/ids.ts'
import {
  addPin,
  beginStart,
  cancel,
  close,
  completeCheckpoint,
  completeSavepoint,
  confirmCommits,
  countRestart,
  discardCancelled,
  discarded,
  fail,
  failSavepoint,
  finish,
  isPinned,
  newJob,
  newestCompletedId,
  raiseIncarnation,
  requestSavepoint,
  reserveIds,
  restorePointOf,
  stop,
} from './head.ts'
import type { Head, ManifestRef } from './head-contract.ts'
import { manifestKey } from './paths.ts'

const first = newJob({ job: jobId('job'), start: start(1), parallelism: 2, maxParallelism: 128 })

function manifest(id: number, options: Partial<ManifestRef> = {}): ManifestRef {
  const kind = options.kind ?? 'checkpoint'
  return {
    id: checkpointId(id),
    kind,
    path: manifestKey(checkpointId(id), kind),
    start: start(1),
    completedAtMs: id * 1000,
    bytes: 10,
    ...options,
  }
}

const savepoint = (id: number, options: Partial<ManifestRef> = {}) => manifest(id, { ...options, kind: 'savepoint' })

/** A running job with the checkpoints `ids` completed, retaining them all. */
function withCheckpoints(...ids: number[]): Head {
  let head = reserveIds(first, 100).head
  for (const id of ids)
    head = completeCheckpoint(head, { manifest: manifest(id), retainedMax: 100, commitsPending: false })
  return head
}

const complete = (head: Head, ref: ManifestRef, retainedMax = 2, commitsPending = false) =>
  completeCheckpoint(head, { manifest: ref, retainedMax, commitsPending })
const idsOf = (manifests: readonly ManifestRef[]) => manifests.map((ref) => ref.id as number)

describe('a new job', () => {
  it('begins empty, under incarnation 1, with no id reserved', () => {
    expect(first).toMatchObject({
      incarnation: 1,
      start: 1,
      restoredFrom: { kind: 'empty' },
      end: { kind: 'none' },
      reservedIds: 0,
      retained: [],
    })
  })

  it('from another job’s savepoint takes ids above it, and permits its transactions', () => {
    const from = savepoint(40)
    const head = newJob({
      job: jobId('job'),
      start: start(1),
      parallelism: 1,
      maxParallelism: 128,
      restoredFrom: { kind: 'manifest', manifest: from },
      commitsPending: true,
    })
    expect(head.unconfirmed).toBe(from)
    expect(reserveIds(head, 5)).toMatchObject({ from: 41, to: 45 })
  })
})

describe('incarnations and starts', () => {
  it('raise by one, and never for a start that has ended', () => {
    expect(raiseIncarnation(first).incarnation).toBe(2)
    for (const ended of [close(first), fail(first, 'why'), finish(first), cancel(first, { deleted: false })])
      expect(() => raiseIncarnation(ended)).toThrow(/has ended/)
  })

  it('of the next number begin at the restore point, pin it, and go on with the ids', () => {
    const before = close(withCheckpoints(3, 5))
    const head = beginStart(before, {
      start: start(2),
      restoredFrom: restorePointOf(before),
      commitsPending: false,
      parallelism: 4,
      maxParallelism: 128,
    })
    expect(head).toMatchObject({
      incarnation: 2,
      start: 2,
      end: { kind: 'none' },
      parallelism: 4,
      reservedIds: 100,
      restarts: 0,
    })
    expect(head.restoredFrom).toEqual({ kind: 'manifest', manifest: manifest(5) })
    expect(head.pins).toEqual([{ manifest: manifest(5), reason: 'restore point' }])
    expect(idsOf(head.retained)).toEqual([3, 5])
  })

  it('without state keep the old checkpoints for a rollback, as none of their restore points', () => {
    const head = beginStart(close(withCheckpoints(3, 5)), {
      start: start(2),
      restoredFrom: { kind: 'empty' },
      commitsPending: false,
      parallelism: 2,
      maxParallelism: 128,
    })
    expect(restorePointOf(head)).toEqual({ kind: 'empty' })
    expect(head.pins.map((pin) => [pin.manifest.id, pin.reason])).toEqual([
      [3, 'rollback'],
      [5, 'rollback'],
    ])
  })

  describe('without state, for as long as they have completed nothing,', () => {
    const stateless = (head: Head, number: number) =>
      beginStart(close(head), {
        start: start(number),
        restoredFrom: { kind: 'empty' },
        commitsPending: false,
        parallelism: 2,
        maxParallelism: 128,
      })
    const pinned = (head: Head) => head.pins.map((pin) => [pin.manifest.id, pin.reason])
    const forRollback = [
      [3, 'rollback'],
      [5, 'rollback'],
    ]
    const inStart = (id: number, number: number) => manifest(id, { start: start(number) })

    it('keep what was before the first of them, whatever else happens', () => {
      const one = stateless(withCheckpoints(3, 5), 2)
      const request = requestId('r')
      const asked = requestSavepoint(one, { request, mode: 'savepoint' })
      const saved = completeSavepoint(asked, { request, manifest: savepoint(9, { start: start(2) }) })
      const two = stateless(stateless(raiseIncarnation(saved), 3), 4)
      for (const head of [one, saved, two, fail(two, 'why'), discardCancelled(cancel(two, { deleted: false }))])
        expect([pinned(head), idsOf(head.retained), idsOf(head.discarding)]).toEqual([forRollback, [3, 5], []])
      // The rollback: from there, and stable once it has completed something itself.
      const ofFive = { kind: 'manifest', manifest: manifest(5) } as const
      const begin = { start: start(5), commitsPending: false, parallelism: 2, maxParallelism: 128 }
      const back = beginStart(close(two), { ...begin, restoredFrom: ofFive })
      expect(pinned(back)).toEqual([...forRollback, [5, 'restore point']])
      expect(pinned(complete(back, inStart(10, 5)))).toEqual([])
    })

    it('and no longer: then nobody may roll it back, and the old ones go by retention (rules 2, 5)', () => {
      const first = complete(stateless(withCheckpoints(3, 5), 2), inStart(10, 2), 2)
      expect([pinned(first), idsOf(first.retained), idsOf(first.discarding)]).toEqual([[], [5, 10], [3]])
      const second = complete(first, inStart(11, 2), 2)
      expect([idsOf(second.retained), idsOf(second.discarding)]).toEqual([
        [10, 11],
        [3, 5],
      ])
      // So that HEAD does not grow with each of them.
      let head = second
      for (let number = 3; number < 20; number++)
        head = complete(stateless(head, number), inStart(number + 20, number), 2)
      expect([idsOf(head.retained), pinned(head)]).toEqual([[38, 39], []])
    })
  })

  it('never lose sight of unconfirmed commits', () => {
    const before = close(complete(withCheckpoints(3), manifest(5), 2, true))
    const begin = { start: start(2), commitsPending: false, parallelism: 2, maxParallelism: 128 }
    expect(() => beginStart(before, { ...begin, restoredFrom: { kind: 'empty' } })).toThrow(/not confirmed/)
    expect(() => beginStart(before, { ...begin, restoredFrom: { kind: 'manifest', manifest: manifest(3) } })).toThrow(
      /not confirmed/,
    )
    expect(beginStart(before, { ...begin, restoredFrom: restorePointOf(before) }).unconfirmed).toEqual(manifest(5))
  })

  it('answer the savepoint requests of the start before as failed', () => {
    const waiting = requestSavepoint(first, { request: requestId('r'), mode: 'stop' })
    const head = beginStart(waiting, {
      start: start(2),
      restoredFrom: { kind: 'empty' },
      commitsPending: false,
      parallelism: 2,
      maxParallelism: 128,
    })
    expect(head.savepointRequests).toEqual([])
    expect(head.savepointResults).toMatchObject([{ request: 'r', outcome: 'failed' }])
  })

  it('must follow', () => {
    expect(() =>
      beginStart(first, {
        start: start(1),
        restoredFrom: { kind: 'empty' },
        commitsPending: false,
        parallelism: 2,
        maxParallelism: 128,
      }),
    ).toThrow(/does not follow/)
  })
})

describe('ids', () => {
  it('of each block lie beyond every block before, completed or not', () => {
    const one = reserveIds(first, 10)
    const two = reserveIds(raiseIncarnation(one.head), 10)
    expect([one.from, one.to, two.from, two.to]).toEqual([1, 10, 11, 20])
  })
})

describe('completing a checkpoint', () => {
  it.each<[string, Head, number, { retained: number[]; discarding: number[] }]>([
    ['adds it', withCheckpoints(), 2, { retained: [9], discarding: [] }],
    ['keeps as many as are to be retained', withCheckpoints(5), 2, { retained: [5, 9], discarding: [] }],
    ['drops the oldest beyond that', withCheckpoints(3, 4, 5), 2, { retained: [5, 9], discarding: [3, 4] }],
    [
      'leaves what is pinned',
      addPin(withCheckpoints(3, 4, 5), { manifest: manifest(3), reason: 'upgrade' }),
      1,
      { retained: [3, 9], discarding: [4, 5] },
    ],
    [
      'adds to what is being discarded',
      { ...withCheckpoints(5), discarding: [manifest(2)] },
      1,
      { retained: [9], discarding: [2, 5] },
    ],
  ])('%s', (_, before, retainedMax, expected) => {
    const after = complete(before, manifest(9), retainedMax)
    expect({ retained: idsOf(after.retained), discarding: idsOf(after.discarding) }).toEqual(expected)
    expect(restorePointOf(after)).toEqual({ kind: 'manifest', manifest: manifest(9) })
  })

  it('releases the restore point of the start once there is a newer one', () => {
    const before = close(withCheckpoints(5))
    const begun = beginStart(before, {
      start: start(2),
      restoredFrom: restorePointOf(before),
      commitsPending: false,
      parallelism: 2,
      maxParallelism: 128,
    })
    expect(isPinned(begun, manifest(5))).toBe(true)
    const after = complete(begun, manifest(9, { start: start(2) }), 1)
    expect(idsOf(after.discarding)).toEqual([5])
  })

  it('permits its commits; the newest stands for all that are unconfirmed', () => {
    const one = complete(withCheckpoints(), manifest(5), 3, true)
    expect(one.unconfirmed).toEqual(manifest(5))
    const two = complete(one, manifest(6), 3, true)
    expect(two.unconfirmed).toEqual(manifest(6))
    expect(confirmCommits(two, checkpointId(5)).unconfirmed).toEqual(manifest(6))
    expect(confirmCommits(two, checkpointId(6)).unconfirmed).toBeUndefined()
    expect(confirmCommits(confirmCommits(two, checkpointId(6)), checkpointId(6)).unconfirmed).toBeUndefined()
  })

  it('without anything to commit confirms all before it, so that the next start can begin there', () => {
    const unconfirmed = complete(withCheckpoints(), manifest(5), 3, true)
    const request = requestId('r')
    for (const ended of [
      close(complete(unconfirmed, manifest(6), 3, false)),
      stop(unconfirmed, { request, manifest: savepoint(6), commitsPending: false }),
    ]) {
      expect(ended.unconfirmed).toBeUndefined()
      const begin = { start: start(2), commitsPending: false, parallelism: 2, maxParallelism: 128 }
      const begun = beginStart(ended, { ...begin, restoredFrom: restorePointOf(ended) })
      expect(begun.restoredFrom).toMatchObject({ manifest: { id: 6 } })
    }
  })

  it('again, after an unclear swap, changes nothing', () => {
    const once = complete(withCheckpoints(3, 5), manifest(9), 2, true)
    expect(complete(once, manifest(9), 2, true)).toBe(once)
  })

  it.each<[string, () => Head]>([
    ['in a start that has ended', () => complete(close(withCheckpoints()), manifest(9))],
    ['below one that completed', () => complete(withCheckpoints(10), manifest(9))],
    ['of another start', () => complete(withCheckpoints(), manifest(9, { start: start(2) }))],
    ['whose id was never reserved', () => complete(withCheckpoints(), manifest(101))],
    ['that is a savepoint', () => complete(withCheckpoints(), savepoint(9))],
    ['retaining none', () => complete(withCheckpoints(), manifest(9), 0)],
  ])('is refused for one %s', (_, act) => {
    expect(act).toThrow()
  })
})

describe('discarding', () => {
  it('forgets what was deleted and nothing else', () => {
    const head = complete(withCheckpoints(3, 4, 5), manifest(9), 1)
    expect(idsOf(discarded(head, [checkpointId(3), checkpointId(5)]).discarding)).toEqual([4])
  })

  it('never meets a pin afterwards', () => {
    const head = complete(withCheckpoints(3), manifest(9), 1)
    expect(() => addPin(head, { manifest: manifest(3), reason: 'upgrade' })).toThrow(/being discarded/)
  })
})

describe('savepoints', () => {
  const request = requestId('r')
  const asked = requestSavepoint(withCheckpoints(5), { request, mode: 'savepoint' })

  it('are requested once, and answered once', () => {
    expect(requestSavepoint(asked, { request, mode: 'savepoint' })).toBe(asked)
    const done = completeSavepoint(asked, { request, manifest: savepoint(6) })
    expect(done.savepointRequests).toEqual([])
    expect(done.savepointResults).toEqual([
      { request, outcome: 'completed', manifest: savepoint(6), detail: '', start: 1, mode: 'savepoint' },
    ])
    expect(completeSavepoint(done, { request, manifest: savepoint(7) })).toBe(done)
    expect(failSavepoint(done, { request, detail: 'late' })).toBe(done)
    expect(requestSavepoint(done, { request, mode: 'savepoint' })).toBe(done)
  })

  it('are no restore point, no base, permit nothing, and drop nothing', () => {
    const done = completeSavepoint(asked, { request, manifest: savepoint(6) })
    expect(restorePointOf(done)).toEqual({ kind: 'manifest', manifest: manifest(5) })
    expect(idsOf(done.retained)).toEqual([5])
    expect(done.unconfirmed).toBeUndefined()
    expect(done.discarding).toEqual([])
  })

  it('that fail are answered with the reason', () => {
    expect(failSavepoint(asked, { request, detail: 'expired' }).savepointResults).toEqual([
      { request, outcome: 'failed', detail: 'expired', start: 1, mode: 'savepoint' },
    ])
  })

  it('keep the last hundred results and at most a hundred requests', () => {
    let head = withCheckpoints()
    for (let index = 0; index < 150; index++)
      head = failSavepoint(head, { request: requestId(`r${index}`), detail: '' })
    expect(head.savepointResults).toHaveLength(100)
    expect(head.savepointResults.at(-1)?.request).toBe('r149')
    for (let index = 0; index < 100; index++)
      head = requestSavepoint(head, { request: requestId(`q${index}`), mode: 'savepoint' })
    expect(() => requestSavepoint(head, { request: requestId('one more'), mode: 'savepoint' })).toThrow(/MR-S13/)
  })

  it('that stop the job end it, permit their commits, and are the restore point', () => {
    const stopped = stop(asked, { request, manifest: savepoint(6), commitsPending: true })
    expect(stopped.end).toEqual({ kind: 'stopped', savepoint: savepoint(6) })
    expect(stopped.unconfirmed).toEqual(savepoint(6))
    expect(restorePointOf(stopped)).toEqual({ kind: 'manifest', manifest: savepoint(6) })
    expect(stop(stopped, { request, manifest: savepoint(6), commitsPending: true })).toBe(stopped)
    expect(confirmCommits(stopped, checkpointId(6)).unconfirmed).toBeUndefined()
  })
})

describe('an end', () => {
  const ends: readonly [string, (head: Head) => Head][] = [
    ['suspended', (head) => close(head)],
    ['finished', (head) => finish(head)],
    ['failed', (head) => fail(head, 'why')],
    ['cancelled', (head) => cancel(head, { deleted: false })],
    ['stopped', (head) => stop(head, { request: requestId('r'), manifest: savepoint(6), commitsPending: false })],
  ]

  it.each(ends)('%s is written when there is none', (kind, act) => {
    expect(act(withCheckpoints()).end.kind).toBe(kind)
  })

  it('that is set stays, whatever comes after; only a delete writes over it', () => {
    for (const [kind, act] of ends) {
      for (const [, again] of ends) expect(again(act(withCheckpoints())).end.kind).toBe(kind)
      expect(cancel(act(withCheckpoints()), { deleted: true }).end.kind).toBe('cancelled')
    }
  })

  it.each<[string, Head, ManifestRef]>([
    [
      'stopped',
      stop(withCheckpoints(3), { request: requestId('r'), manifest: savepoint(6), commitsPending: true }),
      savepoint(6),
    ],
    [
      'drained and not yet finished',
      stop(withCheckpoints(3), {
        request: requestId('r'),
        manifest: savepoint(6, { drained: true }),
        commitsPending: true,
      }),
      savepoint(6, { drained: true }),
    ],
    [
      'drained and finished',
      finish(
        stop(withCheckpoints(3), {
          request: requestId('r'),
          manifest: savepoint(6, { drained: true }),
          commitsPending: false,
        }),
      ),
      savepoint(6, { drained: true }),
    ],
  ])('of a job that was %s keeps its savepoint when a delete writes over it', (_, before, point) => {
    const over = cancel(before, { deleted: true })
    expect(over.end).toEqual({ kind: 'cancelled', savepoint: point })
    expect(cancel(over, { deleted: true })).toEqual(over)
    // What came after the checkpoints of before is committed: whoever began at one of them would write it twice.
    expect(restorePointOf(over)).toEqual({ kind: 'manifest', manifest: point })
    const next = { start: start(2), commitsPending: false, parallelism: 2, maxParallelism: 128 }
    expect(beginStart(over, { ...next, restoredFrom: restorePointOf(over) })).toMatchObject({
      restoredFrom: { manifest: point },
      unconfirmed: over.unconfirmed,
    })
  })

  it('of a drained job is finished once its commits are confirmed', () => {
    const stopped = stop(withCheckpoints(), {
      request: requestId('r'),
      manifest: savepoint(6, { drained: true }),
      commitsPending: true,
    })
    expect(() => finish(stopped)).toThrow(/not confirmed/)
    const finished = finish(confirmCommits(stopped, checkpointId(6)))
    const drained = savepoint(6, { drained: true })
    expect(finished.end).toEqual({ kind: 'finished', drained })
    // Its checkpoints are older than what is committed: whoever began there would write it twice.
    expect(restorePointOf(finished)).toEqual({ kind: 'manifest', manifest: drained })
  })

  it('is not finished while commits are unconfirmed', () => {
    expect(() => finish(complete(withCheckpoints(), manifest(5), 1, true))).toThrow(/not confirmed/)
  })
})

describe('the checkpoints of a cancelled job', () => {
  const cancelled = (head: Head) => cancel(head, { deleted: false })

  it('may all be deleted, and no restore point is left', () => {
    const head = discardCancelled(cancelled(withCheckpoints(3, 5)))
    expect([idsOf(head.retained), idsOf(head.discarding), restorePointOf(head)]).toEqual([
      [],
      [3, 5],
      { kind: 'empty' },
    ])
    expect(isPinned(head, manifest(5))).toBe(false)
    expect(discardCancelled(head)).toEqual(head)
  })

  it('leave the savepoint that it was stopped with as its restore point', () => {
    const stopped = stop(withCheckpoints(3), { request: requestId('r'), manifest: savepoint(6), commitsPending: false })
    const head = discardCancelled(cancel(stopped, { deleted: true }))
    expect([idsOf(head.retained), idsOf(head.discarding)]).toEqual([[], [3]])
    expect(restorePointOf(head)).toEqual({ kind: 'manifest', manifest: savepoint(6) })
  })

  it('leave the savepoint that its start began from, and that no checkpoint of its own came after', () => {
    const stopped = stop(withCheckpoints(3), { request: requestId('r'), manifest: savepoint(6), commitsPending: false })
    const begun = beginStart(stopped, {
      start: start(2),
      restoredFrom: { kind: 'manifest', manifest: savepoint(6) },
      commitsPending: false,
      parallelism: 1,
      maxParallelism: 128,
    })
    const head = discardCancelled(cancel(begun, { deleted: false }))
    expect([idsOf(head.retained), idsOf(head.discarding)]).toEqual([[], [3]])
    expect(restorePointOf(head)).toEqual({ kind: 'manifest', manifest: savepoint(6) })
    const later = discardCancelled(cancel(complete(begun, manifest(9, { start: start(2) })), { deleted: false }))
    expect(restorePointOf(later)).toEqual({ kind: 'empty' })
  })

  it('are kept where they are pinned for a reason of its own; the pin of the restore point is none', () => {
    const begun = beginStart(close(withCheckpoints(3, 5)), {
      start: start(2),
      restoredFrom: { kind: 'manifest', manifest: manifest(5) },
      commitsPending: false,
      parallelism: 1,
      maxParallelism: 128,
    })
    const pinned = addPin(begun, { manifest: manifest(3), reason: 'upgrade' })
    const head = discardCancelled(cancelled(pinned))
    expect([idsOf(head.retained), idsOf(head.discarding)]).toEqual([[3], [5]])
    expect(head.pins.map(({ reason }) => reason)).toEqual(['upgrade'])
  })

  it('stay while commits are unconfirmed, and at any other end', () => {
    const unconfirmed = cancelled(complete(withCheckpoints(3), manifest(5), 2, true))
    expect(discardCancelled(unconfirmed)).toBe(unconfirmed)
    for (const head of [withCheckpoints(3), close(withCheckpoints(3)), fail(withCheckpoints(3), 'why')])
      expect(discardCancelled(head)).toBe(head)
  })
})

describe('the restore point', () => {
  const begun = (head: Head, restoredFrom: Head['restoredFrom']) =>
    beginStart(head, { start: start(2), restoredFrom, commitsPending: false, parallelism: 2, maxParallelism: 128 })
  const ofFive = { kind: 'manifest', manifest: manifest(5) } as const

  it.each<[string, Head, Head['restoredFrom']]>([
    ['of a new job is empty', first, { kind: 'empty' }],
    ['is the newest checkpoint of the start', withCheckpoints(3, 5), ofFive],
    ['stays so after a suspend', close(withCheckpoints(3, 5)), ofFive],
    ['stays so after a failure', fail(withCheckpoints(3, 5), 'why'), ofFive],
    ['of a start that completed nothing is where it began', begun(withCheckpoints(3, 5), ofFive), ofFive],
    [
      'of a stateless start is empty, though older checkpoints are retained',
      begun(withCheckpoints(3, 5), { kind: 'empty' }),
      { kind: 'empty' },
    ],
    ['of a start that began at an older checkpoint is that one', begun(withCheckpoints(5, 8), ofFive), ofFive],
    [
      'after a stop is the savepoint, though newer in id than nothing else',
      stop(withCheckpoints(3), { request: requestId('r'), manifest: savepoint(6), commitsPending: false }),
      { kind: 'manifest', manifest: savepoint(6) },
    ],
  ])('%s', (_, head, expected) => {
    expect(restorePointOf(head)).toEqual(expected)
  })
})

describe('counts', () => {
  it('restarts of the start', () => {
    expect(countRestart(countRestart(first)).restarts).toBe(2)
  })

  it('the newest completed id', () => {
    expect(newestCompletedId(first)).toBe(0)
    expect(newestCompletedId(withCheckpoints(3, 5))).toBe(5)
  })

  it('the incarnation as a number of its own', () => {
    expect(raiseIncarnation(first).incarnation).toBe(incarnation(2))
  })
})
