// Restore points in S3 outside of the job's own store: read, never written.

import type { ForeignObjects, ObjectKey } from '../contract.ts'
import { storageError } from '../errors.ts'
import { parseS3Key } from '../paths.ts'
import type { S3Place } from '../paths.ts'
import type { Calls } from './calls.ts'
import { readObject, readObjectRange } from './reading.ts'

/** The same endpoint and credentials as the job's own. */
export class ForeignS3 implements ForeignObjects {
  readonly #calls: Calls

  constructor(calls: Calls) {
    this.#calls = calls
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    return (await readObject(this.#calls, placeOf(key)))?.bytes
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    return readObjectRange(this.#calls, placeOf(key), { offset, length })
  }
}

function placeOf(key: ObjectKey): S3Place {
  const place = parseS3Key(key)
  if (place === undefined) throw storageError('MR-S04', `${JSON.stringify(key)} is not the key of an object of S3.`)
  return place
}
