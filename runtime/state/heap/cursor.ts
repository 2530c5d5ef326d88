// Where a heap backend stands: the current key, and the cut of the snapshot that runs.

import type { Key } from '../../record/contract.ts'
import { stateError } from '../errors.ts'
import { detachString } from '../../record/detach.ts'

/** The form of a key by which a JS Map finds it. */
export type MapKey = string | number | bigint | boolean

/** After so many keys the version begins anew; it stays a small integer, which the engine keeps without allocation. */
const VERSION_MAX = 2 ** 30 - 1

export class Cursor {
  /** As it was set: -0 is still -0. */
  key: Key | undefined = undefined
  mapKey: MapKey = ''
  /** Index within the backend's range; -1 before the first key. */
  group = -1
  /** keyHash of the key. */
  hash = 0
  /** Changes with each move, so that a table knows whether what it found last is still the current key's. */
  version = 0
  /** Counts snapshots. What is created carries it. */
  epoch = 0
  /**
   * While a snapshot runs: its epoch. Whatever carries a smaller one belongs to the cut and is neither written nor saved yet:
   * before it changes, its old bytes are saved, else the snapshot would hold what came after its barrier. 0: none runs.
   */
  cutEpoch = 0
  private readonly onWrap: () => void

  constructor(onWrap: () => void) {
    this.onWrap = onWrap
  }

  moveTo(key: Key, mapKey: MapKey, hash: number, group: number): void {
    this.key = key
    this.mapKey = mapKey
    this.hash = hash
    this.group = group
    if (this.version === VERSION_MAX) {
      this.version = 0
      this.onWrap()
    }
    this.version++
  }

  /** The current group, where a key is needed. */
  requireGroup(): number {
    if (this.group < 0) throw stateError('MR-T01', 'State was used before a key was set.')
    return this.group
  }
}

/** A key to keep: independent of the record that it came from, with -0 as 0. */
export function ownKey(key: Key): Key {
  if (typeof key === 'string') return detachString(key)
  if (key === 0) return 0
  return Array.isArray(key) ? (key as readonly Key[]).map(ownKey) : key
}

/** The map key to keep for `key`, which is already owned. */
export function ownMapKey(mapKey: MapKey, key: Key): MapKey {
  if (mapKey === key) return key
  return typeof mapKey === 'string' ? detachString(mapKey) : mapKey
}
