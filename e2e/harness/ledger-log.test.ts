import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LedgerLog } from './ledger-log.ts'

let folder = ''
let files = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ledger-log-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const noFailure = (error: unknown): void => expect.unreachable(String(error))

async function open(path: string) {
  const read: string[] = []
  const log = await LedgerLog.open(path, (payload) => void read.push(payload.toString()), noFailure)
  return { log, read }
}

async function written(...payloads: readonly string[]): Promise<string> {
  const path = join(folder, `log-${++files}`)
  const { log } = await open(path)
  for (const payload of payloads) log.append(Buffer.from(payload))
  await log.close()
  return path
}

describe('the log', () => {
  it('gives back what was appended, in order, and goes on behind it', async () => {
    const path = await written('one', '', 'three')
    const again = await open(path)
    expect(again.read).toEqual(['one', '', 'three'])
    const place = again.log.append(Buffer.from('four'))
    await again.log.settled()
    expect(String(await again.log.read(place))).toBe('four')
    await again.log.close()
    const last = await open(path)
    expect(last.read).toEqual(['one', '', 'three', 'four'])
    await last.log.close()
  })

  it('is durable for everybody who waits, however many append meanwhile', async () => {
    const path = join(folder, `log-${++files}`)
    const { log } = await open(path)
    await Promise.all(
      Array.from({ length: 500 }, async (_, n) => {
        const place = log.append(Buffer.from(`payload ${n}`))
        await log.settled()
        const bytes = await readFile(path)
        expect(bytes.toString('utf8', place.offset, place.offset + place.bytes)).toBe(`payload ${n}`)
      }),
    )
    await log.close()
  })

  it('cuts off a frame that was torn at any byte, and what it appends then is read', async () => {
    const whole = await readFile(await written('one', 'two'))
    const first = (await readFile(await written('one'))).byteLength
    for (let bytes = first; bytes < whole.byteLength; bytes++) {
      const path = join(folder, `log-${++files}`)
      await writeFile(path, whole.subarray(0, bytes))
      const { log, read } = await open(path)
      expect(read).toEqual(['one'])
      log.append(Buffer.from('new'))
      await log.close()
      const again = await open(path)
      expect(again.read).toEqual(['one', 'new'])
      await again.log.close()
    }
  })

  it('refuses a log that is damaged before its end: what was acknowledged may be gone', async () => {
    const path = await written('one', 'two')
    const bytes = await readFile(path)
    bytes[9]! ^= 1
    await writeFile(path, bytes)
    await expect(open(path)).rejects.toThrow('damaged at byte 0: the checksum does not fit')
    const other = await written('one')
    await appendFile(other, Buffer.alloc(16, 0xff))
    await expect(open(other)).rejects.toThrow(/damaged at byte 11: a frame of 4294967295 bytes/)
  })

  it('says nothing is durable once the disk has refused', async () => {
    const failures: unknown[] = []
    const path = join(folder, `log-${++files}`)
    const log = await LedgerLog.open(
      path,
      () => undefined,
      (error) => void failures.push(error),
    )
    // A file that takes no more bytes.
    await log.close()
    log.append(Buffer.from('lost'))
    let settled = false
    await Promise.race([log.settled().then(() => (settled = true)), setTimeout(50)])
    log.append(Buffer.from('lost too'))
    await Promise.race([log.settled().then(() => (settled = true)), setTimeout(50)])
    expect(settled).toBe(false)
    expect(failures).toHaveLength(1)
  })

  it('reads frames larger than what it reads at once', async () => {
    const large = 'x'.repeat(9 * 1024 * 1024)
    const { log, read } = await open(await written('small', large, 'small again'))
    expect(read.map((payload) => payload.length)).toEqual([5, large.length, 11])
    await log.close()
  })
})
