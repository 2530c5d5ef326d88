// The asynchronous part of a snapshot: writes what was frozen, slice by slice, while records are processed in between.

import { keyGroup } from '../../base/ids.ts'
import type { CheckpointId, KeyGroup } from '../../base/ids.ts'
import { COPIED_BYTES_MAX } from '../../checkpoint/contract.ts'
import type {
  KeyedSnapshot,
  KeyedStateDescription,
  KeyGroupHandle,
  SnapshotWriter,
  StateHandle,
} from '../../checkpoint/contract.ts'
import { releaseBytes } from '../../record/bytes.ts'
import { BlockMemory } from '../block-memory.ts'
import type { Slices } from '../contract.ts'
import { stateError } from '../errors.ts'
import { BlockWriter, SEGMENT_VERSION } from '../segment.ts'
import type { Pace } from '../segment.ts'

/** Blocks handed to the writer and not yet durable, at most; besides them there is the block being written (BlockMemory). */
const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024

/** One state as it was at the cut. */
export interface FrozenState {
  readonly description: KeyedStateDescription
  writeGroup(group: number, block: BlockWriter, pace: Pace): Promise<void>
}

export interface FrozenBackend {
  readonly first: KeyGroup
  /** Per key group of the range. */
  readonly watermarks: readonly number[]
  readonly states: readonly FrozenState[]
  /** All is written, or never will be: old entries need not be saved any more. */
  readonly thaw: () => void
}

export interface RunningSnapshot {
  readonly done: Promise<KeyedSnapshot>
  abort(): void
}

export function runSnapshot(
  frozen: FrozenBackend,
  id: CheckpointId,
  writer: SnapshotWriter,
  slices: Slices,
): RunningSnapshot {
  let abort!: () => void
  const done = new Promise<KeyedSnapshot>((resolve, reject) => {
    let ended = false
    const run: Run = { frozen, id, writer, slices, aborted: undefined, inFlight: [], inFlightBytes: 0 }
    const end = (error: unknown): void => {
      // An aborted walk ends once more when it notices; by then the next snapshot may have begun, and must not be thawed.
      if (ended) return
      ended = true
      run.aborted = error
      run.inFlight.length = 0
      frozen.thaw()
      reject(error)
    }
    abort = () => end(stateError('MR-T06', `Checkpoint ${id}.`))
    writeAll(run).then(resolve, end)
  })
  // Who aborts may have let go of the promise; whoever still holds it hears of the failure all the same.
  done.catch(() => {})
  return { done, abort }
}

interface Run {
  readonly frozen: FrozenBackend
  readonly id: CheckpointId
  readonly writer: SnapshotWriter
  readonly slices: Slices
  aborted: unknown
  readonly inFlight: { readonly bytes: number; readonly handle: Promise<StateHandle> }[]
  inFlightBytes: number
}

/** What was handed to the writer, once it is written; undefined: a key group without entries. */
type Written = (() => Promise<StateHandle>) | undefined

async function writeAll(run: Run): Promise<KeyedSnapshot> {
  const { frozen } = run
  const memory = new BlockMemory()
  const handles: Written[] = []
  try {
    await nextSlice(run)
    for (let group = 0; group < frozen.watermarks.length; group++) handles.push(await writeGroup(run, group, memory))
  } finally {
    memory.close()
  }
  // Nothing is left to be saved; what follows waits for the store alone.
  frozen.thaw()
  const groups: KeyGroupHandle[] = []
  for (const [group, written] of handles.entries()) {
    const handle = await written?.()
    groups.push(handle === undefined ? headerOf(frozen, group) : { ...headerOf(frozen, group), handle })
  }
  return { format: SEGMENT_VERSION, states: frozen.states.map((state) => state.description), groups }
}

async function writeGroup(run: Run, group: number, memory: BlockMemory): Promise<Written> {
  const { frozen, slices } = run
  const pace: Pace = { shouldYield: slices.shouldYield, pause: () => nextSlice(run) }
  const block = new BlockWriter(headerOf(frozen, group), memory)
  for (const [index, state] of frozen.states.entries()) {
    block.beginSection(index)
    await state.writeGroup(group, block, pace)
    throwIfAborted(run)
    block.endSection()
  }
  const bytes = await block.finish(pace)
  throwIfAborted(run)
  const written = bytes === undefined ? undefined : await hand(run, bytes)
  throwIfAborted(run)
  if (slices.shouldYield()) await pace.pause()
  return written
}

function headerOf({ first, watermarks }: FrozenBackend, group: number): Omit<KeyGroupHandle, 'handle'> {
  return { keyGroup: keyGroup(first + group), watermark: watermarks[group]! }
}

async function nextSlice(run: Run): Promise<void> {
  await run.slices.nextTurn()
  throwIfAborted(run)
  run.slices.begin()
}

/** After an abort another snapshot may have begun: this one must not mark a single entry more. Asked after every wait. */
function throwIfAborted(run: Run): void {
  if (run.aborted !== undefined) throw run.aborted
}

/** Gives a block to the writer, and waits only while too many bytes are under way. */
async function hand(run: Run, bytes: Uint8Array): Promise<() => Promise<StateHandle>> {
  const handle = run.writer.write(run.id, bytes)
  const isOurs = bytes.length > COPIED_BYTES_MAX
  // Awaited below or at the end; until then a failure must not count as nobody's.
  handle.then(
    () => isOurs && releaseBytes(bytes),
    // The bytes may still be on their way.
    () => {},
  )
  run.inFlight.push({ bytes: bytes.length, handle })
  run.inFlightBytes += bytes.length
  while (run.inFlightBytes > IN_FLIGHT_BYTES_MAX) {
    const oldest = run.inFlight.shift()!
    await oldest.handle
    run.inFlightBytes -= oldest.bytes
    await nextSlice(run)
  }
  return () => handle
}
