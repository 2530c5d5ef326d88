import { afterEach, describe, expect, it } from 'vitest'
import { slotId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { TaskKey } from '../base/ids.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import type { ControlledTask } from './controlled-job.ts'
import { pingDeadlineMs } from './health.ts'
import { checkpointRef } from './test-job.ts'
import { closeServed, serve } from './harness.ts'

type TaskEntry = readonly [TaskKey, ControlledTask]

afterEach(closeServed)

describe('health', () => {
  it('is what the services say: yes, an error, or nothing in time, which is no error', async () => {
    let asked = 0
    const { call, clock } = await serve({
      pings: {
        storage: () => Promise.reject(new Error('403 from the store')),
        nats: () => {
          asked++
          return new Promise(() => undefined)
        },
      },
    })
    const first = call('/v1/health')
    await expect.poll(() => asked).toBe(1)
    clock.advance(pingDeadlineMs)
    expect((await first).body).toEqual({
      ready: false,
      storage: { state: 'failed', detail: '403 from the store' },
      nats: { state: 'unknown', detail: 'no answer within 2000 ms' },
    })
    // One that hangs is not asked again and again.
    const second = call('/v1/health')
    await expect.poll(() => clock.waiting).toBe(1)
    clock.advance(pingDeadlineMs)
    await second
    expect(asked).toBe(1)
  })

  it('of a service that a job has not is null', async () => {
    const { call } = await serve({ pings: { storage: async () => undefined } })
    expect((await call('/v1/health')).body).toEqual({
      ready: false,
      storage: { state: 'ok', detail: null },
      nats: null,
    })
  })
})

describe('workers', () => {
  const registered = {
    name: 'w1',
    address: '10.0.0.7',
    slots: 2,
    running: [slotId('0#1.1')],
    state: 'registered',
    sinceMs: 1_700_000_000_000,
  } as const

  it('are those that the coordinator knows; a local job has none', async () => {
    const { call, job } = await serve()
    expect((await call('/v1/workers')).body).toEqual({ slotsNeeded: null, slotsOffered: null, workers: null })
    job.workers = { slotsNeeded: 4, slotsOffered: 2, workers: [registered], reportLost: () => true }
    expect((await call('/v1/workers')).body).toEqual({ slotsNeeded: 4, slotsOffered: 2, workers: [registered] })
  })

  it('are told with each subtask that one of their slots runs', async () => {
    const { call, job } = await serve()
    const [, sums] = [...job.execution!.tasks.values()]
    const running = [job.execution!.slotOf(sums!.task)]
    job.workers = { slotsNeeded: 2, slotsOffered: 2, workers: [{ ...registered, running }], reportLost: () => true }
    const { subtasks } = (await call('/v1/subtasks')).body as { subtasks: { vertex: string; worker: string | null }[] }
    expect(subtasks.map(({ vertex, worker }) => [vertex, worker])).toEqual([
      ['orders', null],
      ['sums', registered.name],
    ])
  })

  it('that are too few are what the job waits for', async () => {
    const { call, job, history } = await serve()
    job.workers = { slotsNeeded: 4, slotsOffered: 2, workers: [registered], reportLost: () => true }
    expect((await call('/v1/job')).body).toMatchObject({ waitsFor: 'slots', slotsNeeded: 4, slotsOffered: 2 })
    job.workers = { ...job.workers, slotsOffered: 4 }
    expect((await call('/v1/job')).body).toMatchObject({ waitsFor: null })
    // One that has ended waits for nothing, though its workers have gone home.
    job.workers = { ...job.workers, slotsOffered: 0 }
    history.observer.ended?.({ kind: 'finished' })
    expect((await call('/v1/job')).body).toMatchObject({ state: 'ended', waitsFor: null, slotsOffered: 0 })
  })

  it('are not told for a size that the job has in HEAD and not yet in its graph', async () => {
    const { call, job, history } = await serve()
    history.observer.running?.()
    job.workers = { slotsNeeded: 2, slotsOffered: 4, workers: [registered], reportLost: () => true }
    job.head = { ...job.head, parallelism: 2 }
    const shown = async () => {
      const { state, parallelism, slotsNeeded, slotsOffered, waitsFor } = (await call('/v1/job')).body
      return { state, parallelism, slotsNeeded, slotsOffered, waitsFor }
    }
    const before = { state: 'running', parallelism: 2, slotsNeeded: 2, slotsOffered: 4, waitsFor: null }
    expect(await shown()).toEqual(before)
    job.head = { ...job.head, rescaledTo: 6 }
    const unknown = { state: 'restarting', parallelism: 6, slotsNeeded: null, slotsOffered: 4, waitsFor: null }
    expect(await shown()).toEqual(unknown)
    job.rescaledTo = 6
    job.workers = { ...job.workers, slotsNeeded: 6 }
    expect(await shown()).toEqual({ ...unknown, state: 'running', slotsNeeded: 6, waitsFor: 'slots' })
  })
})

describe('a restore', () => {
  it('tells how much of the state is read, and which subtasks run', async () => {
    const { call, job } = await serve()
    const tasks = [...job.execution!.tasks].map(([key, entry], index) => {
      const metrics = { restore_bytes: 100, restored_bytes_total: index === 0 ? 100 : 40 }
      return [key, { ...entry, status: index === 0 ? 'running' : 'deploying', report: { metrics } }] as const
    })
    job.execution = { ...job.execution!, allRunning: false, tasks: new Map(tasks) }
    expect((await call('/v1/job')).body['restore']).toEqual({
      bytesRead: 140,
      bytes: 200,
      subtasksRestored: 1,
      subtasks: 2,
    })
  })
})

describe('failures', () => {
  it('are told with what failed, and restarts with how long they took', async () => {
    const { call, history, job, clock } = await serve()
    history.observer.began?.(job.head, job.head.restoredFrom)
    history.observer.running?.()
    const failed = Array.from({ length: 20 }, (_, index) => ({
      vertex: vertexId('sums'),
      subtask: subtaskIndex(index),
    }))
    clock.advance(1_000)
    history.observer.restarting?.({
      message: 'MR-O11 A slot was lost.',
      failed,
      workers: ['w1'],
      inMs: 100,
      tasks: 20,
    })
    clock.advance(700)
    history.observer.running?.()
    history.observer.gaveUp?.({ message: 'no restart is left', code: undefined, failed: [] })
    expect((await call('/v1/exceptions')).body['exceptions']).toEqual([
      {
        atMs: 1_700_000_001_000,
        start: 1,
        incarnation: 1,
        message: 'MR-O11 A slot was lost.',
        code: 'MR-O11',
        failed: failed.slice(0, 16).map(taskKey),
        workers: ['w1'],
        restarted: 20,
        restartInMs: 100,
      },
      {
        atMs: 1_700_000_001_700,
        start: 1,
        incarnation: 1,
        message: 'no restart is left',
        code: null,
        failed: [],
        workers: null,
        restarted: 0,
        restartInMs: null,
      },
    ])
    job.head = { ...job.head, restarts: 3 }
    expect((await call('/v1/restarts')).body).toEqual({
      count: 3,
      restarts: [{ atMs: 1_700_000_001_000, incarnation: 1, subtasks: 20, code: 'MR-O11', runningAfterMs: 700 }],
    })
  })
})

describe('a checkpoint', () => {
  it('is told by its id, whatever became of it', async () => {
    const { call, history, job } = await serve()
    const task = { vertex: vertexId('sums'), subtask: subtaskIndex(0) }
    const figures = { finished: false, bytes: 7, syncMs: 1, asyncMs: 2, alignmentMs: 3, startDelayMs: 4 }
    const snapshot = { operators: {}, ...figures }
    const subtasks = new Map([[taskKey(task), { task, snapshot }]])
    const completed = (id: number) => {
      const manifest = checkpointRef(id)
      const collected = { id: manifest.id, kind: 'checkpoint', triggeredAtMs: 0, subtasks, request: undefined } as const
      history.observer.checkpointCompleted?.({ manifest, durationMs: 12, collected })
    }
    completed(1)
    history.observer.checkpointFailed?.({
      id: checkpointRef(2).id,
      kind: 'checkpoint',
      reason: 'expired',
      detail: 'after 10 ms',
    })
    job.head = { ...job.head, retained: [checkpointRef(1), checkpointRef(3)] }
    expect((await call('/v1/checkpoints/1')).body).toMatchObject({
      state: 'completed',
      retained: true,
      durationMs: 12,
      subtasks: [{ vertex: 'sums', subtask: 0, ...figures }],
    })
    expect((await call('/v1/checkpoints/2')).body).toMatchObject({ state: 'failed', reason: 'expired' })
    // Of an earlier coordinator whose history is lost.
    const forgotten = { state: 'completed', retained: true, durationMs: null, subtasks: null }
    expect((await call('/v1/checkpoints/3')).body).toMatchObject(forgotten)
    expect(await call('/v1/checkpoints/4')).toMatchObject({ status: 404, body: { code: 'MR-H02' } })
    expect(await call('/v1/checkpoints/x')).toMatchObject({ status: 400, body: { code: 'MR-H03' } })
  })
})

describe('metrics', () => {
  it('are what the subtasks report, in the units of Prometheus; what is unknown is left out', async () => {
    const { fetched, history, job, clock } = await serve()
    history.observer.began?.(job.head, job.head.restoredFrom)
    history.observer.running?.()
    const [source, [key, entry]] = [...job.execution!.tasks] as readonly TaskEntry[] as [TaskEntry, TaskEntry]
    const metrics = {
      records_in_total: 10,
      bytes_in_total: 2_048,
      busy_ms_total: 5_500,
      current_watermark_ms: clock.wallMs() - 3_000,
      'user/sums/counter/orders_seen': 3,
      'user/a/b/gauge/open': 2,
      'user/sums/histogram/size/p99': 9,
    }
    job.execution = { ...job.execution!, tasks: new Map([source, [key, { ...entry, report: { metrics } }]]) }
    const response = await fetched('/metrics')
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const lines = (await response.text()).split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        '# TYPE millrace_records_in_total counter',
        'millrace_records_in_total{vertex="sums",subtask="0"} 10',
        'millrace_records_out_total{vertex="sums",subtask="0"} 0',
        'millrace_bytes_in_total{vertex="sums",subtask="0"} 2048',
        'millrace_busy_seconds_total{vertex="sums",subtask="0"} 5.5',
        'millrace_watermark_lag_seconds{vertex="sums",subtask="0"} 3',
        'millrace_user_counter_total{vertex="sums",subtask="0",uid="sums",name="orders_seen"} 3',
        'millrace_user_gauge{vertex="sums",subtask="0",uid="a/b",name="open"} 2',
        'millrace_user_histogram{vertex="sums",subtask="0",uid="sums",name="size",part="p99"} 9',
        'millrace_is_running 1',
        'millrace_restarts_total 0',
        'millrace_checkpoints_completed_total 2',
        'millrace_subtasks{status="running"} 2',
        'millrace_job_info{name="orders",start="1",incarnation="1"} 1',
      ]),
    )
    // Nobody has reported for the source, and there are no workers and no checkpoint: none of them is 0.
    expect(lines.filter((line) => /vertex="orders"|^millrace_(slots|last_checkpoint)/.test(line))).toEqual([])
  })

  it('say that the job is down, how often it restarted, what its last checkpoint was and how many slots it has', async () => {
    const { fetched, history, job } = await serve()
    history.observer.began?.(job.head, job.head.restoredFrom)
    history.observer.running?.()
    const manifest = checkpointRef(7)
    history.observer.checkpointCompleted?.({
      manifest,
      durationMs: 250,
      collected: { id: manifest.id, kind: 'checkpoint', triggeredAtMs: 0, subtasks: new Map(), request: undefined },
    })
    history.observer.restarting?.({ message: 'x', inMs: 1, tasks: 2 })
    job.execution = { ...job.execution!, allRunning: false }
    job.workers = { slotsNeeded: 4, slotsOffered: 2, workers: [], reportLost: () => false }
    await settlePromises()
    const lines = (await (await fetched('/metrics')).text()).split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        'millrace_is_running 0',
        'millrace_restarts_total 1',
        'millrace_last_checkpoint_id 7',
        'millrace_last_checkpoint_bytes 100',
        'millrace_last_checkpoint_duration_seconds 0.25',
        'millrace_last_checkpoint_completed_timestamp_seconds 1700000000',
        'millrace_slots_needed 4',
        'millrace_slots_offered 2',
      ]),
    )
  })
})
