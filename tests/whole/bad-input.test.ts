// What others get wrong: damaged and missing files, a full disk, a job that changed. Each is met with one clear error that says what,
// where and what to do; nothing is lost, nothing starts from empty, and once it is mended the same command goes on.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import { LEDGER_MAGIC } from '../../runtime/connectors/sequence.ts'
import { decodeHead } from '../../runtime/storage/head-format.ts'
import type { DriverOptions } from './support/driver-contract.ts'
import { JobProcess } from './support/job-process.ts'
import { hurry, ledgerOf, linesOf } from './support/ledger-folder.ts'

const jobFile = fileURLToPath(new URL('./jobs/changing-job.ts', import.meta.url))
const perSplit = 3_000
const size = { perSplit, ratePerSecond: 500 }

let root = ''
let stopped = ''

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'millrace-bad-input-'))
  stopped = join(root, 'stopped')
  mkdirSync(stopped)
  const process = start(stopped, {}, { failpoints: 'coordinator.confirm.before:kill:4' })
  expect((await process.ended()).signal, process.story()).toBe('SIGKILL')
})
afterAll(async () => {
  await JobProcess.endAll()
  rmSync(root, { recursive: true, force: true })
})

/** A folder of its own that holds what a job left that was killed after some checkpoints; the next life is fast. */
function resumable(name: string): string {
  const folder = join(root, name)
  cpSync(stopped, folder, { recursive: true })
  hurry(folder)
  return folder
}

function fresh(name: string): string {
  const folder = join(root, name)
  mkdirSync(folder)
  return folder
}

function start(
  folder: string,
  args: Readonly<Record<string, unknown>> = {},
  more: Partial<DriverOptions> = {},
  fullDiskMarker?: string,
) {
  return new JobProcess({ jobFile, folder, name: 'job', args: { ...size, ...args }, ...more }, fullDiskMarker)
}

/** The command ends with this error, and before that has run no task. */
async function refused(process: JobProcess): Promise<{ readonly code: string | undefined; readonly message: string }> {
  const exit = await process.ended()
  expect({ code: exit.code, story: process.story() }).toMatchObject({ code: 1 })
  expect(process.all('running')).toEqual([])
  expect(process.all('error').length, process.story()).toBe(1)
  return process.all('error')[0]!
}

async function finishesExactly(folder: string, args: Readonly<Record<string, unknown>> = {}): Promise<JobProcess> {
  const process = start(folder, args)
  await finished(process)
  expectExact(folder)
  return process
}

async function finished(process: JobProcess): Promise<void> {
  hurry(process.folder)
  expect({ exit: await process.ended(), story: process.story() }).toMatchObject({ exit: { code: 0, signal: null } })
  expect(process.all('outcome')[0]?.kind, process.story()).toBe('finished')
}

function expectExact(folder: string): void {
  const { exact, samples } = ledgerOf(join(folder, 'out'), perSplit)
  expect({ exact, samples }).toEqual({ exact: true, samples: [] })
}

const objectsOf = (folder: string): string => join(folder, '.millrace', 'job', 'objects')
const headsOf = (folder: string): string => join(folder, '.millrace', 'job', 'head')

/** The one that HEAD names: the process may have been killed in the middle of a later one. */
function newestCheckpoint(folder: string): string {
  const head = decodeHead(readFileSync(newestHead(folder)), folder)
  return join(objectsOf(folder), dirname(head.retained.at(-1)!.path))
}

function newestHead(folder: string): string {
  return join(
    headsOf(folder),
    readdirSync(headsOf(folder))
      .filter((name) => name.startsWith('head-'))
      .toSorted()
      .at(-1)!,
  )
}

/** Whoever gives the command next goes on from the same checkpoint. */
function expectRestorable(folder: string): void {
  const [before, after] = [stopped, folder].map((of) => decodeHead(readFileSync(newestHead(of)), of))
  expect({ end: after!.end, retained: after!.retained }).toEqual({ end: { kind: 'none' }, retained: before!.retained })
}

/** Changes a file, and gives what puts it back. */
function damage(path: string, change: (bytes: Buffer) => Buffer): () => void {
  const whole = readFileSync(path)
  writeFileSync(path, change(Buffer.from(whole)))
  return () => writeFileSync(path, whole)
}

const truncated = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length / 2)
const flipped = (bytes: Buffer): Buffer => {
  bytes[Math.floor(bytes.length / 2)]! ^= 0x10
  return bytes
}
const ofLaterFormat = (bytes: Buffer): Buffer => Buffer.from(String(bytes).replace(/"format":\d+/, '"format":99'))

describe.concurrent('a manifest that cannot be read stops the command, is never passed over for an older one, and is used again once it is back', () => {
  for (const [what, change, complaint] of [
    ['truncated', truncated, 'MR-C02'],
    ['with a flipped bit', flipped, 'MR-C02'],
    ['of a later format', ofLaterFormat, 'MR-C03'],
  ] as const) {
    it(what, async () => {
      const folder = resumable(`manifest ${what}`)
      const manifest = join(newestCheckpoint(folder), '_metadata')
      const mend = damage(manifest, change)
      const { message } = await refused(start(folder))
      expect(message).toContain(complaint)
      expect(message).toMatch(/chk-\d+\/_metadata/)
      mend()
      expectRestorable(folder)
    })
  }

  it('missing, although HEAD names it', async () => {
    const folder = resumable('manifest missing')
    const manifest = join(newestCheckpoint(folder), '_metadata')
    renameSync(manifest, `${manifest}.away`)
    const { message } = await refused(start(folder))
    expect(message).toContain('MR-O18')
    expect(message).toMatch(/chk-\d+\/_metadata/)
    renameSync(`${manifest}.away`, manifest)
    await finishesExactly(folder)
  })
})

describe.concurrent('a HEAD that cannot be read', () => {
  it('stops the command before it writes anything, and goes on once it is mended', async () => {
    const folder = resumable('head')
    const heads = readdirSync(headsOf(folder))
    for (const [change, code] of [
      [truncated, 'MR-S10'],
      [flipped, 'MR-S10'],
      [() => Buffer.alloc(0), 'MR-S10'],
      [ofLaterFormat, 'MR-S11'],
    ] as const) {
      const mend = damage(newestHead(folder), change)
      const error = await refused(start(folder))
      expect(error.code).toBe(code)
      expect(error.message).toContain(join('.millrace', 'job'))
      expect(readdirSync(headsOf(folder))).toEqual(heads)
      mend()
    }
    await finishesExactly(folder)
  })
})

describe.concurrent('state that cannot be read stops the command and leaves the restore point as it is', () => {
  const stateObject = (folder: string): string => {
    const checkpoint = newestCheckpoint(folder)
    const names = readdirSync(checkpoint).filter((name) => name !== '_metadata')
    expect(names.length).toBeGreaterThan(0)
    return join(
      checkpoint,
      names.toSorted(
        (left, right) => statSync(join(checkpoint, right)).size - statSync(join(checkpoint, left)).size,
      )[0]!,
    )
  }

  it('with a flipped bit', async () => {
    const folder = resumable('state flipped')
    const mend = damage(stateObject(folder), flipped)
    expect((await refused(start(folder))).message).toMatch(/MR-T03 .*object chk-\d+\/[0-9a-f]{32} .*MR-C51/)
    mend()
    await finishesExactly(folder)
  })

  it('missing', async () => {
    const folder = resumable('state missing')
    const object = stateObject(folder)
    renameSync(object, join(folder, 'away'))
    expect((await refused(start(folder))).message).toMatch(/MR-T03 .*object chk-\d+\/[0-9a-f]{32} .*MR-C50/)
    renameSync(join(folder, 'away'), object)
    await finishesExactly(folder)
  })
})

describe.concurrent('state of one subtask of several that cannot be read stops the command before any function or plain sink has seen a record', () => {
  let left: Promise<string> | undefined
  /** What a job of two slots left behind, and the piece of state that one of its subtasks wrote. */
  async function ofTwo(name: string) {
    left ??= (async () => {
      const folder = fresh('of two, killed')
      const process = start(folder, {}, { parallelism: 2, failpoints: 'coordinator.confirm.before:kill:4' })
      expect((await process.ended()).signal, process.story()).toBe('SIGKILL')
      return folder
    })()
    const folder = join(root, name)
    cpSync(await left, folder, { recursive: true })
    hurry(folder)
    const path = join(newestCheckpoint(folder), '_metadata')
    const counters = decodeManifest(readFileSync(path), path).vertices.flatMap(
      ({ operators }) => operators['counter'] ?? [],
    )
    const [own, others] = counters.map((counter) => counter!.keyed!.groups.flatMap(({ handle }) => handle ?? []))
    const piece = own!.find((handle) => handle.kind === 'object')!
    expect(others!.filter((handle) => handle.kind === 'object' && handle.object === piece.object)).toEqual([])
    return { folder, piece, object: join(objectsOf(folder), piece.object), seen: join(folder, 'seen') }
  }

  it('with a flipped bit', async () => {
    const { folder, piece, object, seen } = await ofTwo('one flipped')
    const mend = damage(object, (bytes) => {
      bytes[piece.offset + Math.floor(piece.length / 2)]! ^= 0x10
      return bytes
    })
    const { message } = await refused(start(folder, { seen }, { parallelism: 2 }))
    expect([message, existsSync(seen)]).toEqual([expect.stringMatching(/MR-T03 .*MR-C51/), false])
    mend()
    await finished(start(folder, { seen }, { parallelism: 2 }))
    expectExact(folder)
    expect(new Set(readFileSync(seen, 'utf8').trim().split('\n'))).toEqual(new Set(['function', 'plain sink']))
  })

  it('missing', async () => {
    const { folder, object, seen } = await ofTwo('one missing')
    rmSync(object)
    const { message } = await refused(start(folder, { seen }, { parallelism: 2 }))
    expect([message, existsSync(seen)]).toEqual([expect.stringMatching(/MR-T03 .*MR-C50/), false])
  })
})

describe.concurrent('a job that changed between two starts', () => {
  for (const [what, args, complaint] of [
    [
      'whose state has a field of another type',
      { state: 'field of another type' },
      /MR-T02 .*counts.*counter|MR-T02 .*counter.*counts/s,
    ],
    ['with another max parallelism', { maxParallelism: 64 }, /MR-C10 .*64.*128/],
    ['whose operator with state is gone', { counterUid: 'renamed' }, /MR-C11 .*uid counter .*counts/],
    ['whose sink with unconfirmed transactions is gone', { sinkUid: 'renamed' }, /MR-C12 .*uid entries/],
    ['with one uid twice', { counterUid: 'entries' }, /MR-J04 .*entries/s],
    ['whose slots build another graph than the coordinator', { graphDiffers: true }, /MR-O14 /],
  ] as const) {
    it(`${what} is refused before any record, and its restore point stays`, async () => {
      const folder = resumable(`changed ${what}`)
      expect((await refused(start(folder, args))).message).toMatch(complaint)
      expectRestorable(folder)
    })
  }

  it('goes on once it is changed back', async () => {
    const folder = resumable('changed back')
    await refused(start(folder, { state: 'field of another type' }))
    await refused(start(folder, { graphDiffers: true }))
    await finishesExactly(folder)
  })

  it('by a field with a default goes on with its state', async () => {
    await finishesExactly(resumable('changed compatibly'), { state: 'field with a default' })
  })
})

describe.concurrent('a malformed record', () => {
  const good = (n: number): string => JSON.stringify({ split: 0, n, magic: LEDGER_MAGIC })
  const withInput = (name: string): string => {
    const folder = fresh(name)
    writeFileSync(
      join(folder, 'input.jsonl'),
      [good(0), '{"split":0,"n":', good(1), '{"split":"zero","n":2}', good(2)].join('\n'),
    )
    return folder
  }
  const entriesOf = (folder: string): number[] =>
    linesOf<{ n: number }>(join(folder, 'out', 'entries'))
      .map(({ n }) => n)
      .toSorted((left, right) => left - right)

  it('fails the job and says where it stands', async () => {
    const folder = withInput('malformed fail')
    const process = start(folder, { input: 'input.jsonl', malformed: 'fail' })
    await process.ended()
    const said = process.all('error')[0]?.message ?? process.all('outcome')[0]?.reason ?? process.story()
    expect(said).toMatch(/MR-N04 .*input\.jsonl.*1/)
  })

  it('is skipped and counted', async () => {
    const folder = withInput('malformed skip')
    const process = start(folder, { input: 'input.jsonl', malformed: 'skip' })
    await finished(process)
    expect(entriesOf(folder)).toEqual([0, 1, 2])
    expect(process.all('outcome')[0]?.metrics['lines/0']?.['malformed_records_total']).toBe(2)
  })

  it('goes to the side output with its text', async () => {
    const folder = withInput('malformed side output')
    await finished(start(folder, { input: 'input.jsonl', malformed: 'side output' }))
    expect(entriesOf(folder)).toEqual([0, 1, 2])
    const malformed = linesOf<{ path: string; text: string; error: string }>(join(folder, 'out', 'malformed'))
    expect(malformed.map(({ path, text }) => ({ path, text }))).toEqual([
      { path: 'input.jsonl', text: '{"split":0,"n":' },
      { path: 'input.jsonl', text: '{"split":"zero","n":2}' },
    ])
  })
})

describe.concurrent('a job file', () => {
  it('that is not there is named', async () => {
    const folder = fresh('no job file')
    const missing = join(folder, 'missing-job.ts')
    const { message } = await refused(start(folder, {}, { jobFile: missing }))
    expect(message).toMatch(/MR-L01 .*missing-job\.ts/)
    expect(readdirSync(folder)).toEqual([])
  })

  it('with a syntax error is named with the place', async () => {
    const folder = fresh('syntax error')
    const broken = join(folder, 'broken-job.ts')
    writeFileSync(
      broken,
      "import { defineJob } from 'millrace'\n\nexport default defineJob((env) => {\n  env.source(((\n})\n",
    )
    const { message } = await refused(start(folder, {}, { jobFile: broken }))
    expect(message).toMatch(/MR-L01 .*\/broken-job\.ts:5:1: /)
    expect(readdirSync(folder)).toEqual(['broken-job.ts'])
  })

  it('with a syntax error in a file that it imports is named with the place in that one, whatever links lead to the first', async () => {
    const folder = fresh('syntax error in an import')
    writeFileSync(join(folder, 'rates.ts'), 'export const rates = {\n  usd: 1\n  eur: 2\n}\n')
    writeFileSync(join(folder, 'job.ts'), "import { rates } from './rates.ts'\nexport default rates\n")
    writeFileSync(join(folder, 'thrown.ts'), "export const a: number = 1\nthrow new Error('no rates')\n")
    symlinkSync(join(folder, 'job.ts'), join(folder, 'link.ts'))
    symlinkSync(join(folder, 'thrown.ts'), join(folder, 'link-thrown.ts'))
    const { message } = await refused(start(folder, {}, { jobFile: join(folder, 'link.ts') }))
    expect(message).toMatch(/MR-L01 .*\/link\.ts: .*\/rates\.ts:3:3: Expected ','/)
    const thrown = await refused(start(folder, {}, { jobFile: join(folder, 'link-thrown.ts') }))
    expect(thrown.message).toMatch(/MR-L01 [^:]*\/link-thrown\.ts:2:7: no rates\./)
  })
})

describe.concurrent('a disk', () => {
  it('that takes no output folder is said, and the job begins once it does', async () => {
    const folder = fresh('output is a file')
    writeFileSync(join(folder, 'out'), 'in the way')
    const process = start(folder)
    expect((await process.event('restarting')).message).toMatch(/MR-N10 .*out\/entries/)
    rmSync(join(folder, 'out'))
    await finished(process)
    expectExact(folder)
  })

  it('that takes no store is said', async () => {
    const folder = fresh('store is a file')
    writeFileSync(join(folder, '.millrace'), 'in the way')
    expect((await refused(start(folder))).message).toMatch(/MR-S0[18] .*\.millrace/)
    rmSync(join(folder, '.millrace'))
    await finishesExactly(folder)
  })

  const fullFor = (name: string, full: readonly string[]) => {
    const folder = fresh(name)
    const marker = join(folder, 'full')
    const process = start(folder, {}, {}, marker)
    return { folder, process, fill: () => writeFileSync(marker, full.join('\n')), free: () => rmSync(marker) }
  }

  it('that is full below the store fails checkpoints, not the job, until there is room', async () => {
    const { folder, process, fill, free } = fullFor('store full', ['/.millrace/'])
    await process.event('checkpoint', 2)
    fill()
    await process.until('two aborted checkpoints for want of room', () => abortedForRoom(process) >= 2)
    expect(process.all('restarting')).toEqual([])
    const before = process.all('checkpoint').length
    free()
    await process.event('checkpoint', before + 2)
    await finished(process)
    expectExact(folder)
  })

  it('that is full below the output restarts the job until there is room', async () => {
    const { folder, process, fill, free } = fullFor('output full', ['out/'])
    await process.event('checkpoint', 2)
    fill()
    expect((await process.event('restarting')).message).toMatch(/MR-N10 .*out\/entries.*the disk is full/)
    free()
    const before = process.all('checkpoint').length
    await process.event('checkpoint', before + 2)
    await finished(process)
    expectExact(folder)
  })

  it('that is full everywhere makes the job wait for room', async () => {
    const { folder, process, fill, free } = fullFor('all full', ['/.millrace/', 'out/'])
    await process.event('checkpoint', 2)
    fill()
    await process.event('restarting')
    free()
    await finished(process)
    expectExact(folder)
  })

  it('that is full at the start is said before anything begins', async () => {
    const folder = resumable('full at the start')
    const marker = join(folder, 'full')
    writeFileSync(marker, '/.millrace/')
    expect((await refused(start(folder, {}, {}, marker))).code).toBe('MR-S02')
    await finishesExactly(folder)
  })
})

function abortedForRoom(process: JobProcess): number {
  return process
    .all('log')
    .filter(({ message, fields }) => message === 'a snapshot was aborted' && JSON.stringify(fields).includes('MR-S02'))
    .length
}
