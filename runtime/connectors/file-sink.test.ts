import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { MemoryFiles, type FileFaults } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { conformanceJob, taskOf } from './conformance-support.ts'
import type { Sink } from './contract.ts'
import { csvFileSink, jsonLineFileSink } from './text-sinks.ts'

interface Row {
  readonly n: number
  readonly text?: unknown
}

async function open<T>(files: FileSystem, sink: Sink<T>, attempt = 1) {
  const failures: unknown[] = []
  const woken: (boolean | undefined)[] = []
  const environment = manualEnvironment()
  const writer = sink.createWriter({
    environment,
    files,
    task: taskOf({ subtask: 3, parallelism: 4, attempt }),
    uid: 'out',
    newestKnownCheckpoint: checkpointId(0),
    metrics: new Metrics(),
    restored: { items: [] },
    fail: (error) => failures.push(error),
    wake: () => void woken.push(writer.ready),
  })
  await writer.open()
  const committer = sink.createCommitter!({ environment, files, uid: 'out', job: conformanceJob })
  const prepare = async (id: number): Promise<Committable[]> =>
    (await writer.prepareCommit(checkpointId(id), false)).map((prepared) => ({
      checkpoint: checkpointId(id),
      ...prepared,
    }))
  return { writer, committer, prepare, failures, woken }
}

const textOf = async (files: FileSystem, path: string): Promise<string> =>
  new TextDecoder().decode(await files.readFile(path))
const visible = async (files: FileSystem): Promise<string[]> =>
  (await files.list('out')).filter((name) => name !== '.pending')

describe('file sink', () => {
  it('names files so that they sort by subtask and checkpoint', async () => {
    const files = new MemoryFiles()
    const { writer, committer, prepare } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    for (const id of [9, 10, 2_000]) {
      writer.write({ n: id }, 0)
      await committer.commit(await prepare(id))
    }
    const names = await visible(files)
    expect(names[0]).toMatch(/^part-00003-0000000009-[0-9a-f]{8}\.jsonl$/)
    expect(await Promise.all(names.map((name) => textOf(files, `out/${name}`)))).toEqual([
      '{"n":9}\n',
      '{"n":10}\n',
      '{"n":2000}\n',
    ])
    expect(await files.list('out/.pending')).toEqual([])
  })

  it('puts records written while a pre-commit is under way into the next transaction', async () => {
    const files = new MemoryFiles()
    const { writer, committer, prepare } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    writer.write({ n: 1 }, 0)
    const first = prepare(1)
    writer.write({ n: 2 }, 0)
    await committer.commit(await first)
    expect(await textOf(files, `out/${(await visible(files))[0]}`)).toBe('{"n":1}\n')
  })

  it('is not ready while the disk is behind, and wakes its task once that has caught up', async () => {
    const files = new MemoryFiles()
    const disk = Promise.withResolvers<void>()
    const append = files.append.bind(files)
    files.append = async (path, bytes) => {
      await disk.promise
      await append(path, bytes)
    }
    const { writer, prepare, woken, failures } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    const text = 'x'.repeat(1024 * 1024)
    let written = 0
    for (; writer.ready === true && written < 300; written++) writer.write({ n: written, text }, 0)
    expect([written, woken]).toEqual([8, []])
    disk.resolve()
    expect(await prepare(1)).toHaveLength(1)
    expect([writer.ready, woken, failures]).toEqual([true, [true], []])
  })

  it('writes more than one buffer', async () => {
    const files = new MemoryFiles()
    const { writer, committer, prepare } = await open(
      files,
      csvFileSink<Row>({ folder: 'out', columns: ['n', 'text'] }),
    )
    for (let n = 0; n < 100_000; n++) writer.write({ n, text: 'some text' }, 0)
    await committer.commit(await prepare(1))
    const lines = (await textOf(files, `out/${(await visible(files))[0]}`)).split('\n')
    expect(lines).toHaveLength(100_002)
    expect([lines[0], lines[1], lines[100_000]]).toEqual(['n,text', '0,some text', '99999,some text'])
  })

  it('quotes CSV and has a form for every value', async () => {
    const files = new MemoryFiles()
    const { writer, committer, prepare } = await open(
      files,
      csvFileSink<Row>({ folder: 'out', columns: ['text', 'n'] }),
    )
    for (const text of ['a,"b"\nc', null, undefined, new Date(0), { x: [1n] }, true, 2n ** 70n])
      writer.write({ n: 1, text }, 0)
    await committer.commit(await prepare(1))
    expect(await textOf(files, `out/${(await visible(files))[0]}`)).toBe(
      'text,n\n"a,""b""\nc",1\n,1\n,1\n1970-01-01T00:00:00.000Z,1\n"{""x"":[1]}",1\ntrue,1\n1180591620717411303424,1\n',
    )
  })

  const disk = (faults: FileFaults) => {
    const state = { broken: false }
    const files = new MemoryFiles((operation, path) => (state.broken ? faults(operation, path) : undefined))
    return { files, state }
  }

  it('reports a full disk before the acknowledgement, and does not commit half a file (B22)', async () => {
    const { files, state } = disk((operation) =>
      operation === 'append' ? { code: 'ENOSPC', effect: 'half' } : undefined,
    )
    const { writer, prepare, failures, committer } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    writer.write({ n: 1 }, 0)
    state.broken = true
    await expect(prepare(1)).rejects.toMatchObject({ code: 'MR-N10', retry: true })
    expect(failures).toHaveLength(1)
    expect(() => writer.write({ n: 2 }, 0)).toThrow('the disk is full')
    state.broken = false
    expect(await visible(files)).toEqual([])
    expect(await committer.list()).toHaveLength(1)
  })

  it('reports a failed fsync before the acknowledgement', async () => {
    const { files, state } = disk((operation) => (operation === 'sync' ? { code: 'EIO', effect: 'none' } : undefined))
    const { writer, prepare } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    writer.write({ n: 1 }, 0)
    state.broken = true
    await expect(prepare(1)).rejects.toThrow('MR-N10')
  })

  for (const operation of ['link', 'sync', 'remove', 'exists', 'sizeOf'] as const) {
    for (const effect of ['none', 'done'] as const) {
      it(`commits again after ${operation} failed (${effect})`, async () => {
        const { files, state } = disk((name) => (name === operation ? { code: 'EIO', effect } : undefined))
        const { writer, prepare, committer } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
        writer.write({ n: 1 }, 0)
        const committables = await prepare(1)
        state.broken = true
        await expect(committer.commit(committables)).rejects.toMatchObject({ code: 'MR-N14', retry: true })
        state.broken = false
        await committer.commit(committables)
        const names = await visible(files)
        expect(names).toHaveLength(1)
        expect(await textOf(files, `out/${names[0]}`)).toBe('{"n":1}\n')
        expect(await committer.list()).toEqual([])
      })
    }
  }

  it('never overwrites a file of that name', async () => {
    const files = new MemoryFiles()
    const { writer, prepare, committer } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    writer.write({ n: 1 }, 0)
    const committables = await prepare(1)
    const { final } = committables[0]!.payload as { final: string }
    await files.writeNew(`out/${final}`, new TextEncoder().encode('{"n":2}\n'))
    await expect(committer.commit(committables)).rejects.toMatchObject({ code: 'MR-N13', retry: false })
    expect(await textOf(files, `out/${final}`)).toBe('{"n":2}\n')
  })

  it('does not commit a pre-committed file that the disk has shortened', async () => {
    const files = new MemoryFiles()
    const { writer, prepare, committer } = await open(files, jsonLineFileSink<Row>({ folder: 'out' }))
    writer.write({ n: 1 }, 0)
    const committables = await prepare(1)
    await files.truncate(`out/.pending/${committables[0]!.transaction}`, 3)
    await expect(committer.commit(committables)).rejects.toThrow('MR-N16')
    expect(await visible(files)).toEqual([])
  })

  it('lists only its own job and sink, and nothing before the first writer', async () => {
    const files = new MemoryFiles()
    const sink = jsonLineFileSink<Row>({ folder: 'out' })
    const committer = sink.createCommitter!({
      environment: manualEnvironment(),
      files,
      uid: 'other',
      job: conformanceJob,
    })
    expect(await committer.list()).toEqual([])
    const { writer, prepare } = await open(files, sink)
    writer.write({ n: 1 }, 0)
    await prepare(1)
    await files.writeNew('out/.pending/notes.txt', new Uint8Array(1))
    expect(await committer.list()).toEqual([])
  })

  it('refuses options and values that cannot work', async () => {
    expect(() => csvFileSink({ folder: 'out', columns: [] })).toThrow('MR-N06')
    expect(() => jsonLineFileSink({ folder: '' })).toThrow('MR-N06')
    // It wrote below ./s3:/ and said that all was well.
    expect(() => jsonLineFileSink({ folder: 's3://out/orders' })).toThrow(/MR-N06.*s3:\/\/out\/orders is an address/)
    const { writer } = await open(new MemoryFiles(), jsonLineFileSink<unknown>({ folder: 'out' }))
    expect(() => writer.write(undefined, 0)).toThrow('MR-N19')
  })

  for (const [what, value] of [
    ['a Map', new Map([['k', 1]])],
    ['a Set', new Set(['a'])],
    ['a Uint8Array', new Uint8Array([1])],
    ['a Buffer', Buffer.from([1])],
    ['NaN', Number.NaN],
    ['-Infinity', -Infinity],
    ['Invalid Date', new Date(Number.NaN)],
  ] as const) {
    it(`refuses ${what}, which JSON would write as another value, also within a record`, async () => {
      const json = (await open(new MemoryFiles(), jsonLineFileSink<unknown>({ folder: 'out' }))).writer
      const csv = (await open(new MemoryFiles(), csvFileSink<Row>({ folder: 'out', columns: ['text'] }))).writer
      expect(() => json.write(value, 0)).toThrow(
        `MR-N19 A record cannot be written in the format of its sink. File sink: ${what} has`,
      )
      expect(() => json.write({ n: 1, list: [{ text: value }] }, 0)).toThrow(`${what} in the field 'text'`)
      expect(() => csv.write({ n: 1, text: value }, 0)).toThrow(`${what} in the field 'text'`)
      expect(() => csv.write({ n: 1, text: { inner: value } }, 0)).toThrow(`${what} in the field 'inner'`)
    })
  }
})
