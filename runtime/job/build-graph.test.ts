import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { monotonic } from '../connectors/watermarks.ts'
import { outputTag } from '../operators/output-tag.ts'
import { tumblingWindows } from '../operators/window-assigner.ts'
import { listState, valueState } from '../state/descriptors.ts'
import { buildGraph } from './build-graph.ts'
import type { BuildOptions } from './build-graph.ts'
import type { JobGraph } from './contract.ts'
import { defineJob, jobOf } from './define-job.ts'
import type { Job } from './define-job.ts'
import type { JobEnvironment } from './job-environment.ts'
import { plainSink, stillSource, twoPhaseSink } from './test-connectors.ts'

const Flight = z.object({ origin: z.string(), time: z.number(), delay: z.number() })
type Flight = z.infer<typeof Flight>

const flights = (env: JobEnvironment) =>
  env.source(stillSource('flights', Flight), { uid: 'flights', watermarks: monotonic((flight) => flight.time) })

const graphOf = (define: (env: JobEnvironment) => void, options: BuildOptions = {}): JobGraph =>
  buildGraph(defineJob(define), options)

/** `vertex ×parallelism: operators` and `source -partitioning-> target`. */
function describeGraph(graph: JobGraph): string[] {
  return [
    ...graph.vertices.map(
      (vertex) => `${vertex.id} ×${vertex.parallelism}: ${vertex.chain.map(({ uid }) => uid).join(' ')}`,
    ),
    ...graph.edges.map((edge) => `${edge.source} -${edge.partitioning}-> ${edge.target}`),
  ]
}

describe('chaining', () => {
  it('joins neighbours and cuts where records are dealt out', () => {
    const graph = graphOf(
      (env) => {
        flights(env)
          .map((flight) => ({ ...flight, day: 1 }))
          .uid('map')
          .keyBy((flight) => flight.origin)
          .reduce((left, right) => (left.delay > right.delay ? left : right))
          .uid('worst')
          .filter((flight) => flight.delay > 0)
          .uid('late')
          .rebalance()
          .map((flight) => flight.origin)
          .uid('origin')
          .sinkTo(plainSink())
          .uid('out')
      },
      { parallelism: 2 },
    )
    expect(describeGraph(graph)).toEqual([
      'flights ×2: flights map',
      'worst ×2: worst late',
      'origin ×2: origin out',
      'flights -hash-> worst',
      'worst -rebalance-> origin',
    ])
    const [source, worst] = graph.vertices
    expect(source?.chain[0]?.outputs).toEqual([{ tag: undefined, to: 'chained', operator: 1 }])
    expect(source?.chain[1]?.outputs).toEqual([{ tag: undefined, to: 'edge', edge: 0 }])
    expect([source?.inputs, source?.outputs, worst?.inputs, worst?.outputs]).toEqual([[], [0], [0], [1]])
    expect(worst?.keySelectors[0]?.({ origin: 'SFO' })).toBe('SFO')
    expect(graph.edges[0]?.keySelector?.({ origin: 'SFO' })).toBe('SFO')
    expect(source?.keySelectors[0]).toBeUndefined()
    expect(source?.name).toBe('flights → map')
  })

  it('cuts at another parallelism, group, and at disableChaining on both sides', () => {
    const graph = graphOf(
      (env) => {
        flights(env)
          .map((flight) => flight.delay)
          .uid('one')
          .parallelism(1)
          .map((delay) => delay)
          .uid('two')
          .slotSharingGroup('heavy')
          .parallelism(1)
          .map((delay) => delay)
          .uid('three')
          .parallelism(1)
          .disableChaining()
          .sinkTo(plainSink())
          .uid('out')
          .parallelism(1)
      },
      { parallelism: 3 },
    )
    expect(describeGraph(graph)).toEqual([
      'flights ×3: flights',
      'one ×1: one',
      'two ×1: two',
      'three ×1: three',
      'out ×1: out',
      'flights -rebalance-> one',
      'one -forward-> two',
      'two -forward-> three',
      'three -forward-> out',
    ])
    expect(graph.vertices.map((vertex) => vertex.slotSharingGroup)).toEqual([
      'default',
      'default',
      'heavy',
      'heavy',
      'heavy',
    ])
  })

  it('makes a tree of several consumers and side outputs', () => {
    const odd = outputTag('odd', z.number())
    const graph = graphOf((env) => {
      const split = flights(env)
        .process<number>({ process: (flight, context) => context.emit(flight.delay) })
        .uid('split')
      split
        .map((delay) => delay)
        .uid('main')
        .sinkTo(plainSink())
        .uid('out-1')
      split.sinkTo(plainSink()).uid('out-2')
      split.sideOutput(odd).sinkTo(plainSink<number>()).uid('out-3')
      split
        .sideOutput(odd)
        .keyBy((number) => number)
        .reduce((left) => left)
        .uid('keyed')
        .sinkTo(plainSink())
        .uid('out-4')
    })
    expect(describeGraph(graph)).toEqual([
      'flights ×1: flights split main out-1 out-2 out-3',
      'keyed ×1: keyed out-4',
      'flights -hash-> keyed',
    ])
    expect(graph.vertices[0]?.chain[1]?.outputs).toEqual([
      { tag: undefined, to: 'chained', operator: 2 },
      { tag: undefined, to: 'chained', operator: 4 },
      { tag: 'odd', to: 'chained', operator: 5 },
      { tag: 'odd', to: 'edge', edge: 0 },
    ])
    expect(graph.edges[0]?.type.name).toContain('odd')
  })

  it('gives a union an edge per part and never chains behind it', () => {
    const graph = graphOf((env) => {
      const left = flights(env)
      const right = env.source(stillSource('other', Flight), { uid: 'other' })
      left
        .union(right, left.filter((flight) => flight.delay > 0).uid('filter'))
        .map((flight) => flight.delay)
        .uid('map')
        .sinkTo(plainSink())
        .uid('out')
    })
    expect(describeGraph(graph)).toEqual([
      'flights ×1: flights filter',
      'other ×1: other',
      'map ×1: map out',
      'flights -forward-> map',
      'other -forward-> map',
      'flights -forward-> map',
    ])
    expect(graph.vertices[2]?.inputs).toEqual([0, 1, 2])
  })

  it('knows two-phase sinks and their committers', () => {
    const graph = graphOf((env) => {
      const stream = flights(env)
      stream.sinkTo(twoPhaseSink()).uid('exact')
      stream.sinkTo(plainSink()).uid('plain')
    })
    const factories = graph.vertices[0]!.chain.map((operator) => operator.factory)
    expect(factories.map((factory) => factory.kind === 'operator' && factory.twoPhase)).toEqual([false, true, false])
    expect(factories.map((factory) => factory.kind === 'operator' && factory.sink !== undefined)).toEqual([
      false,
      true,
      false,
    ])
  })
})

describe('the max parallelism of an operator', () => {
  const keyed = (env: JobEnvironment) =>
    flights(env)
      .keyBy(({ origin }) => origin)
      .reduce((left) => left)
      .uid('latest')
      .maxParallelism(16)

  it('is that of its vertex; what follows and says nothing of its own is chained to it', () => {
    const graph = graphOf((env) => void keyed(env).sinkTo(plainSink()).uid('out'))
    expect(graph.vertices.map(({ id, maxParallelism, chain }) => [id, maxParallelism, chain.length])).toEqual([
      ['flights', 128, 1],
      ['latest', 16, 2],
    ])
    expect(graph.hash).not.toBe(graphOf((env) => void keyed(env).maxParallelism(8).sinkTo(plainSink()).uid('out')).hash)
  })

  it('cuts the chain where another one is asked for, and bounds the parallelism', () => {
    const graph = graphOf(
      (env) =>
        void keyed(env)
          .map((flight) => flight)
          .uid('other')
          .maxParallelism(32)
          .sinkTo(plainSink())
          .uid('out'),
    )
    expect(graph.vertices.map(({ id }) => id)).toEqual(['flights', 'latest', 'other'])
    expect(() => graphOf((env) => void keyed(env).sinkTo(plainSink()), { parallelism: 17 })).toThrow(/MR-J06/)
    expect(() => graphOf((env) => void keyed(env).maxParallelism(0).sinkTo(plainSink()))).toThrow(/MR-J08/)
  })
})

describe('settings', () => {
  it('take the max parallelism that a manifest says rather than the job’s, and keep to its range', () => {
    const job = defineJob((env) => {
      env.config.maxParallelism = 16
      flights(env).sinkTo(plainSink())
    })
    const maxOf = (maxParallelism?: number): number => buildGraph(job, { maxParallelism }).vertices[0]!.maxParallelism
    expect([maxOf(), maxOf(64)]).toEqual([16, 64])
    expect(() => maxOf(0)).toThrow(/MR-J08/)
    expect(() => buildGraph(job, { parallelism: 5, maxParallelism: 4 })).toThrow(/MR-J06 .*the most is 4/)
  })

  it('have the documented defaults, which the job and then the caller change', () => {
    const job = defineJob((env) => {
      env.config.checkpointIntervalMs = 1_000
      env.config.retained = 5
      env.config.parallelism = 4
      flights(env).sinkTo(plainSink())
    })
    const { settings, vertices, name } = buildGraph(job, { settings: { retained: 7 }, name: 'job.ts' })
    expect(settings).toEqual({
      checkpointIntervalMs: 1_000,
      checkpointMode: 'exactly-once',
      onCancellation: 'retain',
      onUnknownCommit: 'stop',
      checkpointTimeoutMs: 600_000,
      minPauseMs: 0,
      tolerableFailures: Number.POSITIVE_INFINITY,
      retained: 7,
      restartStrategy: {
        type: 'exponential-delay',
        initialDelayMs: 100,
        maxDelayMs: 60_000,
        multiplier: 1.5,
        resetAfterMs: 600_000,
        jitter: 0.1,
      },
      failoverStrategy: 'region',
      autoUid: false,
      bufferTimeoutMs: 100,
      freezeRecords: true,
      commitDeadlineMs: 300_000,
      channelDeadlineMs: 120_000,
    })
    expect(vertices[0]?.parallelism).toBe(4)
    expect(buildGraph(job, { parallelism: 2 }).vertices[0]?.parallelism).toBe(2)
    expect(name).toBe('job.ts')
  })
})

describe('the graph hash', () => {
  interface Variant {
    readonly uid?: string
    readonly schema?: z.ZodType<{ n: number }>
    readonly state?: z.ZodType<number>
    readonly code?: number
    readonly named?: string
  }
  const job = (variant: Variant = {}): Job =>
    defineJob({ args: z.object({ day: z.number().default(1) }) }, (env) => {
      flights(env)
        .map(() => ({ n: variant.code ?? 1 }), { schema: variant.schema ?? z.object({ n: z.number() }) })
        .uid(variant.uid ?? 'map')
        .named(variant.named ?? 'map')
        .keyBy((record) => record.n)
        .process({ state: { last: valueState('last', variant.state ?? z.number()) }, process: () => undefined })
        .uid('process')
        .sinkTo(plainSink())
    })
  const hashOf = (variant: Variant = {}, options: BuildOptions = {}): string => buildGraph(job(variant), options).hash

  it('is the same for the same job, whatever its code and names', () => {
    expect(hashOf()).toMatch(/^[0-9a-f]{32}$/)
    expect(hashOf({ code: 2, named: 'other' })).toBe(hashOf())
    expect(hashOf({}, { args: { day: 1 } })).toBe(hashOf())
  })

  it('differs by uid, stream schema, state schema, parallelism and arguments', () => {
    const hashes = [
      hashOf(),
      hashOf({ uid: 'other' }),
      hashOf({ schema: z.object({ n: z.number(), m: z.string().default('') }) }),
      hashOf({ state: z.int() }),
      hashOf({}, { parallelism: 2 }),
      hashOf({}, { args: { day: 2 } }),
    ]
    expect(new Set(hashes).size).toBe(hashes.length)
  })
})

describe('generated uids', () => {
  const uids = (define: (env: JobEnvironment) => void): string[] =>
    graphOf(define, { settings: { autoUid: true } }).vertices.flatMap((vertex) => vertex.chain.map(({ uid }) => uid))

  it('are equal in every process and stay when something is added elsewhere', () => {
    const one = uids((env) => {
      flights(env)
        .keyBy((flight) => flight.origin)
        .reduce((left) => left)
        .sinkTo(plainSink())
    })
    const more = uids((env) => {
      env.source(stillSource('other')).sinkTo(plainSink())
      flights(env)
        .keyBy((flight) => flight.origin)
        .reduce((left) => left)
        .sinkTo(plainSink())
    })
    expect(more).toEqual(expect.arrayContaining(one))
    expect(one[1]).toMatch(/^reduce-[0-9a-f]{8}$/)
  })

  it('tell equal operators on the same stream apart', () => {
    const found = uids((env) => {
      const stream = flights(env)
      stream.sinkTo(plainSink())
      stream.sinkTo(plainSink())
    })
    expect(new Set(found).size).toBe(3)
  })
})

describe('an error in a job says where and what to do', () => {
  it('tells every operator that lacks its uid, and every stream without sink, at once', () => {
    const noUids = (): unknown =>
      graphOf((env) => {
        const stream = env.source(stillSource('flights'))
        stream
          .keyBy(() => 'all')
          .reduce((left) => left)
          .named('sums')
          .sinkTo(plainSink())
        stream.sinkTo(twoPhaseSink())
      })
    expect(noUids).toThrow(
      /^MR-J03 .*the source 'flights' at .*build-graph\.test\.ts:\d+[^]*\nthe reduce 'sums' at .*[^]*\nthe sink 'two-phase' at .*build-graph/,
    )
    expect(() =>
      graphOf((env) => {
        flights(env).map((flight) => flight)
        env.source(stillSource('flights'), { uid: 'others' })
      }),
    ).toThrow(/^MR-J07 .*Nobody reads the map at .*\nthe source 'flights' at /)
  })

  const failing: readonly (readonly [string, string, (env: JobEnvironment) => void])[] = [
    [
      'a stateful operator without uid',
      'MR-J03',
      (env) =>
        void flights(env)
          .keyBy((flight) => flight.origin)
          .reduce((left) => left)
          .sinkTo(plainSink()),
    ],
    ['a source without uid', 'MR-J03', (env) => void env.source(stillSource('flights')).sinkTo(plainSink())],
    ['a two-phase sink without uid', 'MR-J03', (env) => void flights(env).sinkTo(twoPhaseSink())],
    [
      'a doubled uid',
      'MR-J04',
      (env) =>
        void flights(env)
          .map((flight) => flight)
          .uid('flights')
          .sinkTo(plainSink()),
    ],
    [
      'a malformed uid',
      'MR-J05',
      (env) =>
        void flights(env)
          .map((flight) => flight)
          .uid('a/b')
          .sinkTo(plainSink()),
    ],
    [
      'too high a parallelism',
      'MR-J06',
      (env) =>
        void flights(env)
          .map((flight) => flight)
          .parallelism(129)
          .sinkTo(plainSink()),
    ],
    ['a parallelism that is no count', 'MR-J06', (env) => void flights(env).parallelism(0.5).sinkTo(plainSink())],
    ['a stream without sink', 'MR-J07', (env) => void flights(env).map((flight) => flight)],
    [
      'async functions',
      'MR-J51',
      (env) =>
        void flights(env)
          .map(async (flight) => flight)
          .sinkTo(plainSink()),
    ],
    [
      'an async key selector',
      'MR-J51',
      (env) =>
        void flights(env)
          .keyBy((async () => 'a') as never)
          .reduce((left) => left)
          .uid('r')
          .sinkTo(plainSink()),
    ],
    [
      'an async method of a process function',
      'MR-J51',
      (env) =>
        void flights(env)
          .keyBy((flight) => flight.origin)
          // oxlint-disable-next-line typescript/no-misused-promises
          .process({ process: () => undefined, onTimer: async () => undefined })
          .uid('p')
          .sinkTo(plainSink()),
    ],
  ]
  it.each(failing)('%s', (_name, code, define) => {
    let thrown: unknown
    try {
      graphOf(define)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code })
    expect(String(thrown)).toMatch(/build-graph\.test\.ts:\d+/)
  })

  it('an async open is allowed: it runs before any record', () => {
    expect(() =>
      graphOf(
        (env) =>
          void flights(env)
            .process({ open: async () => undefined, process: () => undefined })
            .sinkTo(plainSink()),
      ),
    ).not.toThrow()
  })

  it('an empty job, settings out of range, an async job function, and one that throws', () => {
    const throws = (define: (env: JobEnvironment) => unknown, code: string): void =>
      expect(() => graphOf(define)).toThrow(expect.objectContaining({ code }))
    throws(() => undefined, 'MR-J07')
    throws((env) => (env.config.checkpointIntervalMs = 0), 'MR-J08')
    throws((env) => (flights(env).sinkTo(plainSink()), (env.config.retained = 0)), 'MR-J08')
    throws(
      (env) => (
        flights(env).sinkTo(plainSink()),
        (env.config.restartStrategy = { type: 'fixed-delay', attempts: -1, delayMs: 0 })
      ),
      'MR-J08',
    )
    throws(() => Promise.reject(new Error('unread')), 'MR-J11')
    throws(() => JSON.parse('{') as unknown, 'MR-J10')
  })

  it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['a misspelt setting', { checkpointInterval: 100 }, /checkpointInterval: there is no such setting/],
    [
      'an unknown failover strategy',
      { failoverStrategy: 'none' },
      /failoverStrategy is none; it must be region or full/,
    ],
    ['a restart strategy that is a word', { restartStrategy: 'none' }, /restartStrategy is of no known type/],
    ['an unknown restart strategy', { restartStrategy: { type: 'fixed' } }, /known are none, fixed-delay/],
    [
      'a field of another strategy',
      { restartStrategy: { type: 'fixed-delay', maxAttempts: 3, attempts: 3, delayMs: 0 } },
      /maxAttempts: fixed-delay has no such field/,
    ],
    [
      'a field that is missing',
      { restartStrategy: { type: 'failure-rate', intervalMs: 1_000, delayMs: 0 } },
      /failuresPerInterval is undefined; it must be a whole number from 0/,
    ],
    [
      'a multiplier below one',
      {
        restartStrategy: {
          type: 'exponential-delay',
          initialDelayMs: 1,
          maxDelayMs: 2,
          multiplier: 0.5,
          resetAfterMs: 3,
          jitter: 0,
        },
      },
      /multiplier is 0\.5; it must be a number from 1/,
    ],
  ])('%s, which a job file without type check can have: at once, not at the first failure', (_, config, message) => {
    const define = (env: JobEnvironment): void => {
      flights(env).sinkTo(plainSink())
      Object.assign(env.config, config)
    }
    expect(() => graphOf(define)).toThrow(
      expect.objectContaining({ code: 'MR-J08', message: expect.stringMatching(message) }),
    )
  })

  it('streams of another environment', () => {
    let stolen: ReturnType<typeof flights> | undefined
    graphOf((env) => void (stolen = flights(env)).sinkTo(plainSink()))
    expect(() => graphOf((env) => void flights(env).union(stolen!).sinkTo(plainSink()))).toThrow(
      expect.objectContaining({ code: 'MR-J12' }),
    )
  })

  it('arguments that do not fit, with their path', () => {
    const job = defineJob(
      { args: z.object({ input: z.string(), limits: z.object({ max: z.number() }) }) },
      (env, args) => {
        expect(args.input.length).toBeGreaterThan(0)
        flights(env).sinkTo(plainSink())
      },
    )
    expect(() => buildGraph(job, { args: { input: 'a', limits: { max: 'b' } } })).toThrow(/MR-J01[\s\S]*limits\.max/)
    expect(() =>
      buildGraph(
        defineJob((env) => void flights(env).sinkTo(plainSink())),
        { args: { input: 'a' } },
      ),
    ).toThrow(/MR-J01/)
    expect(buildGraph(job, { args: { input: 'a', limits: { max: 1 } } }).vertices).toHaveLength(1)
  })

  it('a module that exports no job', () => {
    const job = defineJob((env) => void flights(env).sinkTo(plainSink()))
    expect(jobOf({ default: job }, 'job.ts')).toBe(job)
    for (const module of [{}, { default: () => undefined }, { default: {} }, { job }, undefined])
      expect(() => jobOf(module, 'jobs/job.ts')).toThrow(/MR-J02.*jobs\/job\.ts/)
  })

  it('a key that is none, at the first record that has it', () => {
    const graph = graphOf(
      (env) =>
        void flights(env)
          .keyBy((flight) => [flight.origin, flight.delay])
          .process({ state: { all: listState('all', z.string()) }, process: () => undefined })
          .uid('p')
          .sinkTo(plainSink()),
    )
    const { keySelector } = graph.edges[0]!
    expect(keySelector!({ origin: 'SFO', delay: 3 })).toEqual(['SFO', 3])
    expect(() => keySelector!({ origin: 'SFO', delay: Number.NaN })).toThrow(
      /MR-J09.*build-graph\.test\.ts:\d+ gave \[SFO, NaN\]/,
    )
    expect(() => keySelector!({ origin: 'SFO' })).toThrow(/MR-J09/)
    expect(() => keySelector!(undefined)).toThrow(/MR-J50/)
  })

  it('a bad window', () => {
    const windowed =
      (lateness: number): (() => JobGraph) =>
      () =>
        graphOf(
          (env) =>
            void flights(env)
              .keyBy((flight) => flight.origin)
              .window(tumblingWindows({ sizeMs: 10 }))
              .allowedLateness(lateness)
              .reduce((left) => left)
              .uid('w')
              .sinkTo(plainSink()),
        )
    expect(windowed(0)).not.toThrow()
    expect(windowed(-1)).toThrow(/MR-J54/)
  })
})
