import { describe, expect, it } from 'vitest'
import type { PlantedFault } from '../base/planted.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import { ManualClock } from '../testkit/manual-clock.ts'
import type { PollStatus, SourceOutput, SourceReader } from './contract.ts'
import { SourceDriver } from './source-driver.ts'
import { boundedOutOfOrderness, monotonic, noWatermarks, type ChainableWatermarkStrategy } from './watermarks.ts'

/** A reader that a test feeds: records wait in `queue`, `pending` names splits with data on its way. */
class FakeReader implements SourceReader<number, string> {
  readonly queue: { readonly split: string; readonly timestamp: number }[] = []
  owned: string[] = []
  readonly pending = new Set<string>()
  poll(output: SourceOutput<number>): PollStatus {
    const next = this.queue.shift()
    if (next === undefined) return 'nothing'
    output.emit(next.timestamp, next.timestamp, next.split)
    return 'more'
  }
  ownedSplits(): readonly string[] {
    return this.owned
  }
  hasPending(split: string): boolean {
    return this.pending.has(split) || this.queue.some((record) => record.split === split)
  }
  start(): void {}
  addSplits(): void {}
  noMoreSplits(): void {}
  snapshot(): readonly string[] {
    return []
  }
  close(): void {}
}

const IDLE_MS = 1_000

function setUp(options: {
  owned: string[]
  strategy?: ChainableWatermarkStrategy<number>
  planted?: PlantedFault[]
  bounded?: boolean
}) {
  const clock = new ManualClock()
  const reader = new FakeReader()
  reader.owned = options.owned
  const emitted: number[] = []
  const driver = new SourceDriver<number>({
    strategy: options.strategy ?? monotonic<number>().withIdleness(IDLE_MS),
    reader,
    clock,
    planted: new Set(options.planted),
    bounded: options.bounded ?? false,
  })
  const output = { emit: (_: number, timestamp: number) => void emitted.push(timestamp), emitTo: () => undefined }
  const poll = (): PollStatus => driver.poll(output)
  const emit = (split: string, timestamp: number): void => {
    reader.queue.push({ split, timestamp })
    while (poll() === 'more');
    driver.progress()
  }
  /** As the task does: poll and progress at each tick. */
  const passQuietly = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += driver.tickMs!) {
      clock.advance(driver.tickMs!)
      poll()
      driver.progress()
    }
  }
  driver.setSplitsWait(false)
  driver.progress()
  return { clock, reader, driver, emitted, poll, emit, passQuietly }
}

describe('watermark of several splits', () => {
  it('is the smallest of the splits', () => {
    const { driver, emit } = setUp({ owned: ['a', 'b'] })
    emit('a', 100)
    emit('b', 50)
    expect(driver.progress()).toEqual({ watermark: 49, idle: false })
  })

  it('is held by a split that is owned and was not read yet', () => {
    const { driver, emit } = setUp({ owned: ['a', 'b'] })
    emit('a', 100)
    expect(driver.progress().watermark).toBe(MIN_WATERMARK)
  })

  it('is no longer held by a split that was read to its end', () => {
    const { driver, emit, reader } = setUp({ owned: ['a', 'b'] })
    emit('b', 50)
    emit('a', 100)
    reader.owned = ['a']
    expect(driver.progress().watermark).toBe(99)
  })

  it('does not fall when a new split begins earlier', () => {
    const { driver, emit, reader } = setUp({ owned: ['a'] })
    emit('a', 100)
    reader.owned = ['a', 'b']
    expect(driver.progress().watermark).toBe(99)
    emit('b', 10)
    expect(driver.progress().watermark).toBe(99)
  })

  it('does not advance without watermarks', () => {
    const { driver, emit } = setUp({ owned: ['a'], strategy: noWatermarks() })
    emit('a', 100)
    expect(driver.progress()).toEqual({ watermark: MIN_WATERMARK, idle: false })
  })

  it('takes event times from the strategy, and refuses those that are no integers', () => {
    const strategy = boundedOutOfOrderness<number>((value) => value * 2, 0)
    const { driver, emit, emitted } = setUp({ owned: ['a'], strategy })
    emit('a', 100)
    expect(emitted).toEqual([200])
    expect(driver.progress().watermark).toBe(199)
    const broken = setUp({ owned: ['a'], strategy: monotonic<number>(() => Number.NaN) })
    expect(() => broken.emit('a', 1)).toThrow('MR-N09')
  })

  it("refuses a source's own event times, and watermarks of a job's own generator, that are no integers", () => {
    expect(() => setUp({ owned: ['a'] }).emit('a', 0.5)).toThrow(/MR-N09.* 0\.5, for a record of split a/)
    const createGenerator = () => ({ onRecord: () => undefined, current: () => 99.5 })
    const broken = setUp({ owned: [], strategy: { ...monotonic<number>(), createGenerator } })
    broken.reader.owned = ['a']
    expect(() => broken.emit('a', 100)).toThrow(/MR-N21.*split a is 99\.5/)
  })
})

describe('idle splits (R16)', () => {
  it('lets the watermark advance when one of two splits is silent for the timeout', () => {
    const { driver, emit, passQuietly } = setUp({ owned: ['a', 'b'] })
    emit('a', 100)
    passQuietly(IDLE_MS / 2)
    expect(driver.progress().watermark).toBe(MIN_WATERMARK)
    passQuietly(IDLE_MS)
    emit('a', 101)
    expect(driver.progress()).toEqual({ watermark: 100, idle: false })
  })

  it('counts the chance also while another split emits all the time', () => {
    const { driver, emit, clock } = setUp({ owned: ['a', 'b'] })
    for (let step = 0; step < 20; step++) {
      clock.advance(100)
      emit('a', 1_000 + step)
    }
    expect(driver.progress().watermark).toBe(1_018)
  })

  const noChance: { why: string; disturb: (setup: ReturnType<typeof setUp>) => void }[] = [
    {
      why: 'backpressured',
      disturb: ({ driver, clock }) => {
        driver.backpressured(true)
        for (let step = 0; step < 100; step++) {
          clock.advance(IDLE_MS / 4)
          driver.progress()
        }
        driver.backpressured(false)
      },
    },
    {
      why: 'not polled, as during an alignment, behind a poll that had something',
      disturb: ({ driver, clock, reader, poll }) => {
        reader.queue.push({ split: 'a', timestamp: 100 })
        poll()
        driver.progress()
        for (let step = 0; step < 100; step++) {
          clock.advance(IDLE_MS / 4)
          driver.progress()
        }
      },
    },
    {
      why: 'fetching, or holding fetched records',
      disturb: ({ reader, passQuietly }) => {
        reader.pending.add('a')
        reader.pending.add('b')
        passQuietly(10 * IDLE_MS)
      },
    },
    {
      why: 'frozen with its whole process, and looked at once afterwards',
      disturb: ({ clock, poll, driver }) => {
        clock.advance(100 * IDLE_MS)
        poll()
        driver.progress()
      },
    },
  ]
  for (const { why, disturb } of noChance) {
    it(`does not call a split idle that was ${why}`, () => {
      const setup = setUp({ owned: ['a', 'b'] })
      setup.emit('a', 100)
      disturb(setup)
      expect(setup.driver.progress()).toEqual({ watermark: MIN_WATERMARK, idle: false })
    })
  }

  it('begins the timeout anew after backpressure ends, minus what had passed before', () => {
    const { driver, clock, passQuietly } = setUp({ owned: ['a'] })
    passQuietly(IDLE_MS * 0.75)
    driver.backpressured(true)
    clock.advance(50 * IDLE_MS)
    driver.progress()
    driver.backpressured(false)
    driver.progress()
    expect(driver.progress().idle).toBe(false)
    passQuietly(IDLE_MS)
    expect(driver.progress().idle).toBe(true)
  })

  it('counts what lies between spells of backpressure, so that a silent split does not hold event time for as long as others are slow', () => {
    const { driver, emit, clock } = setUp({ owned: ['a', 'b'] })
    const stepMs = IDLE_MS / 20
    for (let step = 0; step < 100; step++) {
      driver.backpressured(true)
      clock.advance(stepMs)
      driver.backpressured(false)
      clock.advance(stepMs)
      if (step * stepMs === IDLE_MS / 2) expect(driver.progress().watermark).toBe(MIN_WATERMARK)
      emit('a', 1_000 + step)
    }
    expect(driver.progress().watermark).toBe(1_098)
  })

  it('is idle as a whole when all splits are, and active again with the first record', () => {
    const { driver, emit, passQuietly } = setUp({ owned: ['a', 'b'] })
    emit('a', 100)
    emit('b', 50)
    passQuietly(2 * IDLE_MS)
    expect(driver.progress().idle).toBe(true)
    emit('b', 60)
    expect(driver.progress()).toEqual({ watermark: 99, idle: false })
  })

  it('ends at the same watermark in whatever order splits become idle (FLINK-38454)', () => {
    const last = (['a', 'b'] as const).map((first) => {
      const { driver, emit, passQuietly, clock, poll } = setUp({ owned: ['a', 'b'] })
      emit('a', 100)
      emit('b', 50)
      const other = first === 'a' ? 'b' : 'a'
      // `first` falls silent while `other` repeats its newest timestamp; then `other` does.
      for (let passed = 0; passed < 2 * IDLE_MS; passed += IDLE_MS / 4) {
        clock.advance(IDLE_MS / 4)
        emit(other, other === 'a' ? 100 : 50)
        poll()
        driver.progress()
      }
      passQuietly(2 * IDLE_MS)
      return driver.progress()
    })
    expect(last[0]).toEqual(last[1])
    expect(last[0]).toEqual({ watermark: 99, idle: true })
  })

  it('does not let a reactivated split move the watermark back', () => {
    const { driver, emit, passQuietly } = setUp({ owned: ['a', 'b'] })
    emit('a', 100)
    passQuietly(2 * IDLE_MS)
    emit('a', 500)
    expect(driver.progress().watermark).toBe(499)
    emit('b', 20)
    expect(driver.progress()).toEqual({ watermark: 499, idle: false })
    emit('b', 600)
    expect(driver.progress().watermark).toBe(499)
    emit('a', 700)
    expect(driver.progress().watermark).toBe(599)
  })

  it('calls a reader without splits idle only after the enumerator said that none waits', () => {
    const { driver, passQuietly } = setUp({ owned: [] })
    driver.setSplitsWait(true)
    passQuietly(10 * IDLE_MS)
    expect(driver.progress().idle).toBe(false)
    driver.setSplitsWait(false)
    expect(driver.progress().idle).toBe(true)
    driver.setSplitsWait(true)
    expect(driver.progress().idle).toBe(false)
  })

  it('calls a reader whose splits are all silent idle only then, too: the one that waits may be older', () => {
    const { driver, emit, passQuietly } = setUp({ owned: ['a', 'b'] })
    driver.setSplitsWait(true)
    emit('a', 100)
    emit('b', 50)
    passQuietly(10 * IDLE_MS)
    expect(driver.progress()).toEqual({ watermark: 49, idle: false })
    driver.setSplitsWait(false)
    expect(driver.progress()).toEqual({ watermark: 99, idle: true })
  })

  it('never calls a reader of a bounded source idle for want of splits: its end is near, and still fires windows', () => {
    const { driver, passQuietly } = setUp({ owned: [], bounded: true })
    driver.setSplitsWait(false)
    passQuietly(10 * IDLE_MS)
    expect(driver.progress().idle).toBe(false)
  })

  it('is caught when planted: backpressure then counts as silence', () => {
    const { driver, clock, emit } = setUp({ owned: ['a', 'b'], planted: ['idle-by-backpressure'] })
    emit('a', 100)
    driver.backpressured(true)
    clock.advance(2 * IDLE_MS)
    expect(driver.progress().idle).toBe(true)
  })
})
