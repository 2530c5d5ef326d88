// From a state's declaration to the table that holds it and the handle that operators get.

import type { Clock } from '../../base/environment.ts'
import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { Codec } from '../../record/contract.ts'
import type { StateDescriptor, StateTtl } from '../contract.ts'
import { descriptionOf, typeOf } from '../description.ts'
import { stateError } from '../errors.ts'
import { CellTable } from './cell-table.ts'
import type { Cells } from './cell-table.ts'
import type { Cursor } from './cursor.ts'
import { HeapAggregatingState, HeapListState, HeapMapState, HeapReducingState, HeapValueState } from './handles.ts'
import { freezing, keepingOf } from '../keeping.ts'
import type { Keeping } from '../keeping.ts'
import { MapTable } from './map-table.ts'
import type { StateTable } from './table.ts'
import { TimedCellTable } from './timed-cell-table.ts'
import { TimedListState, TimedMapState } from './timed-handles.ts'
import { TimedMapTable } from './timed-map-table.ts'
import { TimeToLive } from './time-to-live.ts'
import { listFormat, singleFormat, timedListFormat, timedSingleFormat } from './value-format.ts'

export interface CreatedState {
  readonly descriptor: StateDescriptor
  readonly table: StateTable
  readonly handle: unknown
}

export interface StateSurroundings {
  readonly cursor: Cursor
  readonly groupCount: number
  readonly freeze: boolean
  readonly clock: Clock
}

export function createState(descriptor: StateDescriptor, surroundings: StateSurroundings): CreatedState {
  const frozen = surroundings.freeze && !holdsAccumulators(descriptor)
  const { row } = typeOf(descriptor)
  const parts: Parts = {
    ...surroundings,
    description: descriptionOf(descriptor),
    keeping: keepingOf(typeOf(descriptor), frozen),
    codec: frozen ? freezing(row) : row,
  }
  const made =
    descriptor.ttl === undefined ? lasting(descriptor, parts) : passing(descriptor, { ...parts, ttl: descriptor.ttl })
  return { descriptor, ...made }
}

/** One name is one state: throws MR-T01 when it is asked for as another. */
export function refuseOther(known: StateDescriptor, asked: StateDescriptor, uid: string): void {
  const where = `Operator '${uid}', state '${known.name}'`
  if (known.kind !== asked.kind) {
    throw stateError('MR-T01', `${where}: it is ${known.kind} and was asked for as ${asked.kind}.`)
  }
  const { codecs } = descriptionOf(known)
  const other = descriptionOf(asked).codecs
  const sameMapKey = codecs.mapKey?.fingerprint === other.mapKey?.fingerprint
  if (codecs.value?.fingerprint !== other.value?.fingerprint || !sameMapKey) {
    throw stateError('MR-T01', `${where}: it was asked for with two schemas.`)
  }
  if (!sameTtl(known.ttl, asked.ttl)) throw stateError('MR-T01', `${where}: it was asked for with two times to live.`)
}

interface Parts extends StateSurroundings {
  readonly description: KeyedStateDescription
  readonly keeping: Keeping
  readonly codec: Codec<unknown>
}

type Made = Omit<CreatedState, 'descriptor'>

function lasting(descriptor: StateDescriptor, { description, keeping, codec, cursor, groupCount }: Parts): Made {
  if (descriptor.kind === 'map') {
    const table = new MapTable(description, singleFormat(codec), descriptor.mapKey, cursor, groupCount)
    return { table, handle: new HeapMapState(table, keeping) }
  }
  const format = descriptor.kind === 'list' ? listFormat(codec) : singleFormat(codec)
  const table = new CellTable(description, format, cursor, groupCount)
  const handle = descriptor.kind === 'list' ? new HeapListState(table, keeping) : cellHandle(descriptor, table, keeping)
  return { table, handle }
}

function passing(descriptor: StateDescriptor, parts: Parts & { readonly ttl: StateTtl }): Made {
  const { description, keeping, codec, cursor, groupCount } = parts
  const options = { description, cursor, groupCount, life: new TimeToLive(parts.ttl, parts.clock) }
  if (descriptor.kind === 'map') {
    const table = new TimedMapTable({ ...options, format: timedSingleFormat(codec), mapKey: descriptor.mapKey })
    return { table, handle: new TimedMapState(table, keeping) }
  }
  if (descriptor.kind === 'list') {
    const table = new TimedCellTable({ ...options, format: timedListFormat(codec) })
    return { table, handle: new TimedListState(table, keeping) }
  }
  const table = new TimedCellTable({ ...options, format: timedSingleFormat(codec) })
  return { table, handle: cellHandle(descriptor, table, keeping) }
}

function cellHandle(
  descriptor: Exclude<StateDescriptor, { readonly kind: 'list' | 'map' }>,
  table: Cells,
  keeping: Keeping,
): unknown {
  switch (descriptor.kind) {
    case 'value':
      return new HeapValueState(table, keeping)
    case 'reducing':
      return new HeapReducingState(table, keeping, descriptor.reduce)
    case 'aggregating':
      return new HeapAggregatingState(table, keeping, descriptor.aggregate)
    default:
      return descriptor satisfies never
  }
}

/** What an operator changes in place record by record; freezing it would copy it each time. */
function holdsAccumulators(descriptor: StateDescriptor): boolean {
  return descriptor.kind === 'aggregating' || (descriptor.kind === 'map' && descriptor.accumulators === true)
}

function sameTtl(left: StateTtl | undefined, right: StateTtl | undefined): boolean {
  return left?.ms === right?.ms && left?.refresh === right?.refresh && left?.expired === right?.expired
}
