import { describe, expect, it } from 'vitest'
import { plainType, WireTransport } from '../../tests/support/network.ts'
import type { MillraceError } from '../base/errors.ts'
import { checkpointId, edgeId, incarnation, jobId, slotId, subtaskIndex, vertexId } from '../base/ids.ts'
import type { Attempt, SlotId, TaskId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { ChannelItem } from '../record/element.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ChannelPeer, InputChannel } from './contract.ts'
import { ChannelHub } from './channel-hub.ts'
import { decodeFrame, encodeFrame } from './frame.ts'
import type { Frame } from './frame.ts'
import { creditAddress, dataAddress } from './subjects.ts'

const job = jobId('team/flights')
const [left, right] = [slotId('0#0'), slotId('1#0')]
const attempt = (number: number): Attempt => ({ incarnation: incarnation(1), number })
const source: TaskId = { vertex: vertexId('source one'), subtask: subtaskIndex(0) }
const sink: TaskId = { vertex: vertexId('sink'), subtask: subtaskIndex(0) }
const channel = { edge: edgeId(0), producer: source.subtask, consumer: sink.subtask }

/** Two slots with one wire between them: the producer in `left`, the consumer in `right`. */
function slots(consumerSlot: SlotId = right) {
  const environment = manualEnvironment()
  const transport = new WireTransport()
  const failures: MillraceError[] = []
  const metrics = new Metrics()
  const hubOf = (slot: SlotId) => new ChannelHub({ job, slot, transport, environment, deadlineMs: 2000 })
  const producers = hubOf(left)
  const consumers = consumerSlot === left ? producers : hubOf(consumerSlot)
  const consumerPeer = (number: number): ChannelPeer => ({
    channel,
    attempt: attempt(number),
    address: dataAddress(job, consumerSlot, { task: sink, attempt: attempt(number) }),
  })
  const producerPeer = (number: number): ChannelPeer => ({
    channel,
    attempt: attempt(number),
    address: creditAddress(job, left, { task: source, attempt: attempt(number) }),
  })
  const owner = (task: TaskId, number: number) => ({
    task,
    attempt: attempt(number),
    fail: (error: MillraceError) => void failures.push(error),
    metrics,
  })
  const output = (own = 1, peer = 1) => producers.output(consumerPeer(peer), plainType, owner(source, own))
  const input = (own = 1, peer = 1) => consumers.input(producerPeer(peer), plainType, owner(sink, own))
  const settle = (rounds = 50): void => {
    for (let round = 0; round < rounds && transport.deliver() + environment.executor.runAll() > 0; round++) {
      // until nothing moves
    }
  }
  return { environment, transport, failures, metrics, producers, consumers, output, input, settle }
}

function takeAll(input: InputChannel): ChannelItem[] {
  const items: ChannelItem[] = []
  for (let item = input.next(); item !== undefined; item = input.next()) items.push(item)
  return items
}

function valuesOf(items: readonly ChannelItem[]): unknown[] {
  return items.flatMap((item) => (item.kind === 'records' ? item.values : []))
}

const consumerSlots = [
  ['in one slot (memory)', left],
  ['between two slots (frames)', right],
] as const

for (const [where, consumerSlot] of consumerSlots) {
  describe(`a channel ${where}`, () => {
    it('delivers records and events in order', () => {
      const { output, input, settle } = slots(consumerSlot)
      const [out, inn] = [output(), input()]
      inn.open()
      settle()
      const barrier = {
        kind: 'barrier',
        barrier: { id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 1, alignedMs: 2 },
      } as const
      out.emit('a', 1)
      out.emit({ b: 2 }, 2)
      out.event({ kind: 'watermark', timestamp: 2 })
      out.event(barrier)
      out.emit('c', 3)
      out.flush()
      out.event({ kind: 'status', idle: true })
      out.event({ kind: 'end' })
      settle()
      expect(takeAll(inn)).toEqual([
        { kind: 'records', values: ['a', { b: 2 }], timestamps: [1, 2] },
        { kind: 'watermark', timestamp: 2 },
        barrier,
        { kind: 'records', values: ['c'], timestamps: [3] },
        { kind: 'status', idle: true },
        { kind: 'end' },
      ])
    })

    it('is not ready when too much waits, and says so when there is room again', () => {
      const { output, input, settle } = slots(consumerSlot)
      const [out, inn] = [output(), input()]
      let changes = 0
      out.onChange(() => changes++)
      inn.open()
      settle()
      let emitted = 0
      while (out.ready) out.emit(`${emitted++}`.padEnd(200, '.'), 0)
      out.flush()
      expect(emitted).toBeGreaterThan(100)
      expect(emitted).toBeLessThan(10_000)
      settle()
      if (!out.ready) expect(changes).toBe(0)
      let taken = 0
      for (let round = 0; round < 100; round++) {
        taken += valuesOf(takeAll(inn)).length
        settle()
      }
      expect(taken).toBe(emitted)
      expect(out.ready).toBe(true)
      expect(changes).toBe(1)
    })

    it('gives nothing while blocked, and tells when something is available, once and in a later turn', () => {
      const { output, input, settle, environment } = slots(consumerSlot)
      const [out, inn] = [output(), input()]
      let told = 0
      inn.onAvailable(() => told++)
      inn.open()
      settle()
      inn.block()
      out.emit('a', 0)
      out.flush()
      settle()
      expect([inn.available, inn.next(), told]).toEqual([false, undefined, 0])
      inn.unblock()
      expect([inn.available, told]).toEqual([true, 0])
      environment.executor.runAll()
      expect(told).toBe(1)
      out.emit('b', 0)
      out.flush()
      settle()
      expect(told).toBe(1)
      expect(valuesOf(takeAll(inn))).toEqual(['a', 'b'])
      expect(inn.available).toBe(false)
      out.emit('c', 0)
      out.flush()
      settle()
      expect(told).toBe(2)
    })

    it('tells the producer when its end of data has been received', () => {
      const { output, input, settle } = slots(consumerSlot)
      const [out, inn] = [output(), input()]
      let changes = 0
      out.onChange(() => changes++)
      inn.open()
      settle()
      expect(out.endReceived).toBe(false)
      out.event({ kind: 'end' })
      settle()
      expect(out.endReceived).toBe(true)
      expect(changes).toBe(1)
      expect(takeAll(inn)).toEqual([{ kind: 'end' }])
    })
  })
}

describe('a channel in one slot', () => {
  it('keeps what a producer left that ended before its consumer was deployed', () => {
    const { output, input, producers } = slots(left)
    const out = output()
    out.emit('a', 0)
    out.event({ kind: 'end' })
    expect(out.endReceived).toBe(true)
    producers.close(source, attempt(1))
    expect(takeAll(input())).toEqual([{ kind: 'records', values: ['a'], timestamps: [0] }, { kind: 'end' }])
  })

  it('of new attempts has nothing of the old ones', () => {
    const { output, input, producers } = slots(left)
    const [old, oldIn] = [output(1, 1), input(1, 1)]
    old.emit('old', 0)
    old.flush()
    const [fresh, freshIn] = [output(2, 2), input(2, 2)]
    producers.close(source, attempt(1))
    producers.close(sink, attempt(1))
    fresh.emit('new', 0)
    fresh.flush()
    expect(valuesOf(takeAll(freshIn))).toEqual(['new'])
    expect(takeAll(oldIn)).toEqual([])
  })
})

describe('frames between two slots', () => {
  it('make the consumer of a lost frame wait, not lose', () => {
    const { output, input, settle, transport, environment, metrics } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    transport.loses = () => true
    for (let number = 0; number < 100; number++) {
      out.emit(number, 0)
      out.flush()
    }
    environment.clock.advance(1000)
    transport.loses = () => false
    environment.clock.advance(250)
    settle()
    expect(valuesOf(takeAll(inn))).toEqual(Array.from({ length: 100 }, (_, number) => number))
    expect(metrics.values.get('frames_resent_total')).toBe(100)
  })

  it('fail both subtasks with MR-W02 when nothing passes until the deadline', () => {
    const { output, input, settle, transport, environment, failures } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    transport.loses = () => true
    out.emit(1, 0)
    out.flush()
    environment.clock.advance(5000)
    expect(failures.map(({ code }) => code)).toEqual(['MR-W02'])
    expect(failures[0]!.message).toContain('Channel 0:0>0, attempts 1.1 to 1.1.')
    expect(environment.clock.waiting).toBe(0)
  })

  /** What attempt 1 of the producer sent to attempt 1 of the consumer, with these attempts in its header. */
  const staleFrame = (producerAttempt: number, consumerAttempt: number): Uint8Array => {
    const { output, input, settle, transport } = slots()
    const [out, inn] = [output(1, 1), input(1, 1)]
    inn.open()
    settle()
    out.emit('stale', 0)
    out.flush()
    const sent = transport.wire.splice(0)
    expect(sent).toHaveLength(1)
    const frame = decodeFrame(sent[0]!.bytes) as Frame
    const route = {
      ...frame.route,
      producerAttempt: attempt(producerAttempt),
      consumerAttempt: attempt(consumerAttempt),
    }
    return encodeFrame(route, frame.message)
  }

  it.each([
    ['another attempt of the producer', 1, 2],
    ['another attempt of the consumer', 2, 1],
    ['other attempts', 1, 1],
  ])('of %s are refused, and those of the right ones are taken', (_, producerAttempt, consumerAttempt) => {
    const { output, input, settle, consumers, transport } = slots()
    const [out, inn] = [output(2, 2), input(2, 2)]
    inn.open()
    settle()
    // Both are the first of their channel: were it taken, it would stand in the place of the right one.
    transport.send(
      dataAddress(job, right, { task: sink, attempt: attempt(2) }),
      staleFrame(producerAttempt, consumerAttempt),
    )
    settle()
    expect([takeAll(inn), consumers.refusedFrames]).toEqual([[], 1])
    out.emit('fresh', 0)
    out.flush()
    settle()
    expect(valuesOf(takeAll(inn))).toEqual(['fresh'])
    expect(consumers.refusedFrames).toBe(1)
  })

  it('that give credit to another attempt open nothing', () => {
    const { output, settle, producers, transport } = slots()
    const out = output(1, 1)
    const grant = { kind: 'credit', received: 0, limit: 100_000, answered: 0, opening: true, gap: false } as const
    const from = (number: number) =>
      encodeFrame({ channel, producerAttempt: attempt(1), consumerAttempt: attempt(number) }, grant)
    const to = creditAddress(job, left, { task: source, attempt: attempt(1) })
    transport.send(to, from(2))
    settle()
    out.emit('kept', 0)
    out.flush()
    expect([transport.wire, producers.refusedFrames]).toEqual([[], 1])
    transport.send(to, from(1))
    transport.deliver()
    expect(transport.wire.length).toBeGreaterThan(0)
  })

  it('of an attempt that was closed are refused, and nobody listens for it any more', () => {
    const { output, input, settle, consumers, transport, environment } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    consumers.close(sink, attempt(1))
    const fresh = input(2, 1)
    out.emit('late', 0)
    out.flush()
    const late = transport.wire.map(({ bytes }) => bytes)
    expect(late).toHaveLength(1)
    settle()
    expect([takeAll(inn), takeAll(fresh), consumers.refusedFrames]).toEqual([[], [], 0])
    expect(transport.subjects).toEqual([
      'mr.team=2fflights.credit.source=20one.0.1-1',
      'mr.team=2fflights.data.sink.0.1-2',
    ])
    transport.send(dataAddress(job, right, { task: sink, attempt: attempt(2) }), late[0]!)
    settle()
    expect([takeAll(inn), takeAll(fresh), consumers.refusedFrames]).toEqual([[], [], 1])
    expect(environment.lines).toContainEqual(
      expect.objectContaining({
        message: 'A frame was refused.',
        fields: expect.objectContaining({ reason: expect.stringContaining('0:0>0@1.1>1.1') }),
      }),
    )
  })

  it('that are none are refused', () => {
    const { input, settle, consumers, transport, environment } = slots()
    input(1, 1)
    transport.send(dataAddress(job, right, { task: sink, attempt: attempt(1) }), Uint8Array.from([1, 2, 3]))
    settle()
    expect(consumers.refusedFrames).toBe(1)
    expect(environment.lines.map(({ message }) => message)).toContain('A frame was refused.')
  })

  it('go on being answered after the consumer has taken the end and left, so that the producer may leave too', () => {
    const { output, input, settle, transport, environment, consumers, failures } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    out.event({ kind: 'end' })
    transport.deliver()
    expect(takeAll(inn)).toEqual([{ kind: 'end' }])
    // The word that it arrived is lost.
    transport.wire.length = 0
    inn.close()
    consumers.close(sink, attempt(1))
    expect(out.endReceived).toBe(false)
    environment.clock.advance(200)
    settle()
    expect(out.endReceived).toBe(true)
    environment.clock.advance(10_000)
    expect(failures).toEqual([])
    consumers.closeAll()
    expect(transport.subjects).toEqual(['mr.team=2fflights.credit.source=20one.0.1-1'])
  })

  it('carry a record of megabytes in fragments, and refuse one above 8 MiB by name', () => {
    const { output, input, settle } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    const large = 'x'.repeat(3_000_000)
    out.emit('before', 1)
    out.emit(large, 2)
    out.emit('after', 3)
    out.flush()
    expect(out.ready).toBe(false)
    const values: unknown[] = []
    for (let round = 0; round < 200; round++) {
      settle()
      values.push(...valuesOf(takeAll(inn)))
    }
    expect(values).toEqual(['before', large, 'after'])
    expect(() => {
      out.emit('y'.repeat(9_000_000), 4)
      out.flush()
    }).toThrow(/MR-W01.*plain of 90000\d+ bytes on channel 0:0>0/)
  })

  it('hold batches of about 32 KiB whatever the size of records', () => {
    const { output, input, settle, transport } = slots()
    const [out, inn] = [output(), input()]
    inn.open()
    settle()
    for (const size of [10, 100, 1000]) {
      const sizes: number[] = []
      for (let round = 0; round < 20; round++) {
        for (let index = 0; index < 100_000 / size; index++) out.emit('z'.repeat(size), 0)
        sizes.push(...transport.wire.map(({ bytes }) => bytes.length))
        settle()
        takeAll(inn)
        settle()
      }
      expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * 1024)
      expect(sizes.slice(-20).filter((bytes) => bytes > 20_000).length).toBeGreaterThan(14)
    }
  })

  it('open a channel soon after a consumer that was first', () => {
    const { output, input, settle, environment } = slots()
    const inn = input()
    inn.open()
    settle()
    const out = output()
    out.emit(1, 0)
    out.flush()
    environment.clock.advance(10)
    settle()
    expect(valuesOf(takeAll(inn))).toEqual([1])
  })
})
