// An append-only file that survives kill -9: frames of [length, CRC-32, payload], made durable in groups, read back at the start.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

const FRAME_HEADER_BYTES = 8
/** Where the payload of the first frame lies. */
export const FIRST_OFFSET = FRAME_HEADER_BYTES
/** Above any body that the server takes. */
const PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
const READ_BYTES = 4 * 1024 * 1024

/** Where a payload lies in the file. */
export interface LogPlace {
  readonly offset: number
  readonly bytes: number
}

export type OnFrame = (payload: Buffer, place: LogPlace) => void | Promise<void>

export class LedgerLog {
  readonly #file: FileHandle
  readonly #path: string
  readonly #fail: (error: unknown) => void
  #end: number
  #waiting: Buffer[] = []
  #writing: Promise<void> | undefined
  /** Begins when the one that is running has ended, and takes all that waits by then. */
  #next: Promise<void> | undefined

  private constructor(file: FileHandle, path: string, end: number, fail: (error: unknown) => void) {
    this.#file = file
    this.#path = path
    this.#end = end
    this.#fail = fail
  }

  /**
   * Gives every frame to `onFrame`, in order. A frame cut short at the end was never acknowledged, and is cut off; any other damage
   * throws. `fail` hears that the disk refused: nothing may be acknowledged after that, so the process must end.
   */
  static async open(path: string, onFrame: OnFrame, fail: (error: unknown) => void): Promise<LedgerLog> {
    const file = await open(path, 'a+')
    const end = await readFrames(file, path, onFrame).catch(async (error: unknown) => {
      await file.close()
      throw error
    })
    const { size } = await file.stat()
    if (size > end) await file.truncate(end)
    await file.sync()
    const folder = await open(dirname(path), 'r')
    await folder.sync()
    await folder.close()
    return new LedgerLog(file, path, end, fail)
  }

  get bytes(): number {
    return this.#end
  }

  /** The frame's place is fixed by the call; it is durable once `settled()` resolves. */
  append(payload: Buffer): LogPlace {
    const header = Buffer.alloc(FRAME_HEADER_BYTES)
    header.writeUInt32LE(payload.byteLength, 0)
    header.writeUInt32LE(crc32(payload), 4)
    this.#waiting.push(header, payload)
    const place = { offset: this.#end + FRAME_HEADER_BYTES, bytes: payload.byteLength }
    this.#end = place.offset + place.bytes
    return place
  }

  /** Everything appended before is durable. Whoever waits meanwhile shares the next write and sync. */
  async settled(): Promise<void> {
    if (this.#waiting.length === 0) return this.#writing
    this.#next ??= this.#writeNext()
    return this.#next
  }

  /** Gives every frame once more. */
  async readAll(onFrame: OnFrame): Promise<void> {
    await this.settled()
    await readFrames(this.#file, this.#path, onFrame)
  }

  /** Durable payloads only. */
  async read({ offset, bytes }: LogPlace): Promise<Buffer> {
    return readExactly(this.#file, offset, bytes)
  }

  async close(): Promise<void> {
    await this.settled()
    await this.#file.close()
  }

  async #writeNext(): Promise<void> {
    await this.#writing
    this.#next = undefined
    this.#writing = this.#write()
    await this.#writing
  }

  async #write(): Promise<void> {
    const frames = this.#waiting
    this.#waiting = []
    try {
      await this.#file.appendFile(Buffer.concat(frames))
      await this.#file.datasync()
      this.#writing = undefined
    } catch (error) {
      // #writing stays: whoever waits must never hear that it is durable.
      this.#fail(error)
      await new Promise<never>(() => {})
    }
  }
}

/** Returns where the last whole frame ends. */
async function readFrames(file: FileHandle, path: string, onFrame: OnFrame): Promise<number> {
  const { size } = await file.stat()
  let offset = 0
  let held: Buffer = Buffer.alloc(0)
  /** Where `held` begins. */
  let heldAt = 0
  const bytesAt = async (at: number, bytes: number): Promise<Buffer> => {
    if (at + bytes > heldAt + held.byteLength) {
      held = await readExactly(file, at, Math.min(size - at, Math.max(bytes, READ_BYTES)))
      heldAt = at
    }
    return held.subarray(at - heldAt, at - heldAt + bytes)
  }
  while (offset + FRAME_HEADER_BYTES <= size) {
    const header = await bytesAt(offset, FRAME_HEADER_BYTES)
    const [bytes, checksum] = [header.readUInt32LE(0), header.readUInt32LE(4)]
    const place = { offset: offset + FRAME_HEADER_BYTES, bytes }
    if (bytes > PAYLOAD_BYTES_MAX) throw new Error(`${path}: damaged at byte ${offset}: a frame of ${bytes} bytes`)
    if (place.offset + bytes > size) break
    const payload = await bytesAt(place.offset, bytes)
    if (crc32(payload) !== checksum) throw new Error(`${path}: damaged at byte ${offset}: the checksum does not fit`)
    await onFrame(payload, place)
    offset = place.offset + bytes
  }
  return offset
}

async function readExactly(file: FileHandle, offset: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes)
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await file.read(buffer, done, bytes - done, offset + done)
    if (bytesRead === 0) throw new Error(`the log ends at byte ${offset + done} of ${offset + bytes}`)
    done += bytesRead
  }
  return buffer
}
