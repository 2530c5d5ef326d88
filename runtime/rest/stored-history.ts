// The history that coordinators have left in the job's store: objects `history/<incarnation>-<number>`, of which the newest readable one counts.

import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { HISTORY_PREFIX, parseHistoryKey } from '../storage/paths.ts'
import { decodeHistory } from './history-format.ts'
import type { Remembered } from './job-history.ts'

/** The newest may be written over while it is looked for: by whom it does not matter. */
const looksMax = 3

export interface StoredHistory {
  /** Newest first. */
  readonly keys: readonly ObjectKey[]
  /** undefined: there is none that can be read. */
  readonly remembered: Remembered | undefined
}

export interface ReadHistoryOptions {
  readonly store: Pick<ObjectStore, 'list' | 'read'>
  /** Hears of one that cannot be read; an older one is looked for. */
  readonly onUnreadable: (error: unknown) => void
}

/** undefined: it is being written by another process all the while. Rejects where the store does not answer. */
export async function readHistory({ store, onUnreadable }: ReadHistoryOptions): Promise<StoredHistory | undefined> {
  for (let looks = 1; looks <= looksMax; looks++) {
    const keys = newestFirst(await store.list(HISTORY_PREFIX))
    const found = await newestOf(keys, { store, onUnreadable })
    if (found !== 'gone') return { keys, remembered: found }
  }
  return undefined
}

/** undefined: none that can be read. gone: one was taken away meanwhile. */
async function newestOf(
  keys: readonly ObjectKey[],
  { store, onUnreadable }: ReadHistoryOptions,
): Promise<Remembered | undefined | 'gone'> {
  for (const key of keys) {
    const bytes = await store.read(key)
    if (bytes === undefined) return 'gone'
    try {
      return decodeHistory(bytes, key)
    } catch (error) {
      onUnreadable(error)
    }
  }
  return undefined
}

/** Names of another form are not ours to read or delete. */
function newestFirst(keys: readonly ObjectKey[]): ObjectKey[] {
  return keys
    .flatMap((key) => {
      const name = parseHistoryKey(key)
      return name === undefined ? [] : [{ key, ...name }]
    })
    .toSorted((left, right) => right.incarnation - left.incarnation || right.number - left.number)
    .map(({ key }) => key)
}
