// Every name and sentence that operators of today store. They are compared at a restore: whoever rewords one refuses, or loses, what all jobs
// have stored. A change here needs a reader of the old form first, and a line in CHANGELOG.md.

import { beforeAll, describe, expect, it } from 'vitest'
import type { Manifest } from '../../runtime/checkpoint/manifest.ts'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import { recordedOperators } from '../../runtime/checkpoint/recorded-operators.ts'
import { coGroupWork } from '../../runtime/operators/co-group.ts'
import {
  continuousTrigger,
  countTrigger,
  eventTimeTrigger,
  processingTimeTrigger,
  purging,
} from '../../runtime/operators/triggers.ts'
import { globalWindow } from '../../runtime/operators/window-assigner.ts'
import { drainTimers, range } from '../../runtime/state/conformance-harness.ts'
import { createHeapBackend } from '../../runtime/state/heap/backend.ts'
import { SnapshotDownloader } from '../../runtime/checkpoint/snapshot-reader.ts'
import type { ObjectKey } from '../../runtime/storage/contract.ts'
import { MemoryObjectStore } from '../../runtime/storage/memory-store.ts'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'
import { manifests, writtenByToday } from './v2-writing.ts'

let manifest: Manifest
let reader: SnapshotDownloader

beforeAll(async () => {
  const { objects } = await writtenByToday()
  const store = new MemoryObjectStore()
  for (const [key, bytes] of objects) await store.create(key as ObjectKey, bytes)
  reader = new SnapshotDownloader({ store, environment: manualEnvironment() })
  manifest = decodeManifest(objects.get(manifests.checkpoint)!, manifests.checkpoint)
})

/** `name kind`, with what the keys of a map are, and what timers stand for. */
function keyedStates(of: Manifest): Record<string, string[]> {
  const named: Record<string, string[]> = {}
  for (const [uid, { perSubtask }] of recordedOperators(of)) {
    const states = perSubtask.flatMap((snapshot) => snapshot?.keyed?.states ?? [])
    if (states.length === 0) continue
    const texts = states.map(({ name, kind, codecs, timerMeaning }) =>
      [name, kind, codecs.mapKey?.fingerprint, timerMeaning].filter((text) => text !== undefined).join(': '),
    )
    // Of operators without timers nothing is said.
    named[uid] = [...new Set(texts)].filter((text) => text !== 'timers: timers').toSorted()
  }
  return named
}

/** What timers of one key and time are told apart by. */
async function timerTags(uid: string): Promise<string[]> {
  const snapshots = recordedOperators(manifest)
    .get(uid)!
    .perSubtask.flatMap((snapshot) => snapshot?.keyed ?? [])
  const meanings = snapshots.flatMap(({ states }) => states.map(({ timerMeaning }) => timerMeaning))
  const timerMeaning = meanings.find((meaning) => meaning !== undefined)
  const backend = createHeapBackend({ ...range(), uid, timerMeaning })
  await backend.restore(snapshots, reader)
  const timers = [...drainTimers(backend, 'event'), ...drainTimers(backend, 'processing')]
  return [...new Set(timers.map(({ tag }) => tag))].toSorted()
}

describe('what is stored by name', () => {
  it('are the keyed states of operators and what their timers stand for', () => {
    const ofWindows = (of: string): string => `windows: map: number (starts of ${of})`
    const ofTrigger = (of: string): string => `trigger: map: number (starts of ${of})`
    const ofEnds = (of: string): string => `ends: map: number (starts of ${of})`
    const timers = (of: string): string => `timers: timers: timers of ${of}`
    const triggered = (of: string): string[] => [timers(of), ofTrigger(of), ofWindows(of)]
    const sessions = (of: string): string[] => [ofEnds(of), ...triggered(of)]
    expect(keyedStates(manifest)).toEqual({
      timers: [
        'all: list',
        'byNumber: map: number',
        'joined: aggregating',
        'last: value',
        'note: value',
        'sum: reducing',
        timers('a process function'),
      ],
      expiring: ['list: list', 'map: map: string', 'value: value'],
      reduced: ['reduced: value'],
      aggregated: ['aggregated: aggregating'],
      tumbling: [timers('windows of 10000 ms'), ofWindows('windows of 10000 ms')],
      sliding: [timers('windows of 4000 ms'), ofWindows('windows of 4000 ms')],
      session: sessions("sessions of event time under the trigger 'event time'"),
      global: triggered("the global window under the trigger 'count'").slice(1),
      early: triggered("windows of 100000 ms of event time under the trigger 'continuous processing time'"),
      'tumbling-processing': triggered("windows of 10000 ms of processing time under the trigger 'processing time'"),
      'sliding-processing': triggered("windows of 20000 ms of processing time under the trigger 'processing time'"),
      'session-processing': sessions("sessions of processing time under the trigger 'processing time'"),
      joined: [timers('windows of 10000 ms'), ofWindows('windows of 10000 ms')],
      coGrouped: sessions("sessions of event time under the trigger 'event time'"),
      near: ['left: map: number', 'right: map: number', 'timers: timers: ends of the wait of an interval join'],
      connected: ['lefts: value', 'rights: value', timers('a process function')],
      'ruled-by-key': ['count: value', timers('a process function')],
    })
  })

  it('are the operator states of operators, sources and sinks, and sources with an enumerator', () => {
    const named: Record<string, string[]> = {}
    for (const [uid, { perSubtask }] of recordedOperators(manifest)) {
      const states = perSubtask.flatMap((snapshot) => Object.entries(snapshot?.operatorState ?? {}))
      const texts = states.map(([name, { redistribution, codec }]) => `${name}: ${redistribution}: ${codec.kind}`)
      if (texts.length > 0) named[uid] = [...new Set(texts)].toSorted()
    }
    expect(named).toEqual({
      numbers: ['splits: split: json'],
      others: ['splits: split: json'],
      rules: ['splits: split: json'],
      'asked-ordered': ['in-flight: split: schema'],
      'asked-unordered': ['in-flight: split: schema'],
      ruled: ['rules: broadcast: schema'],
      'ruled-by-key': ['rules: broadcast: schema'],
      'holder-split': ['writer: split: json'],
      'holder-union': ['writer: union: json'],
      'holder-broadcast': ['writer: broadcast: json'],
    })
    const enumerators = Object.entries(manifest.enumerators).map(([uid, { codec }]) => `${uid}: ${codec.fingerprint}`)
    expect(enumerators).toEqual([
      'numbers: numbered enumerator:1',
      'others: numbered enumerator:1',
      'rules: file enumerator:1',
    ])
  })

  it('are the timers of operators by their tags', async () => {
    const uids = ['tumbling', 'sliding', 'session', 'early', 'near', 'ruled-by-key']
    const tags = await Promise.all(uids.map(async (uid) => [uid, await timerTags(uid)] as const))
    expect(Object.fromEntries(tags)).toEqual({
      tumbling: ['fire'],
      sliding: ['clean up 60000', 'fire'],
      session: ['end 0', 'end 1000', 'end 2000'],
      early: ['end 0', 'trigger 0'],
      near: ['left 6000', 'right 3000'],
      'ruled-by-key': [''],
    })
  })

  it('are triggers, and what the timers of a window of all time stand for', () => {
    const triggers = [
      countTrigger(2),
      purging(countTrigger(2)),
      eventTimeTrigger(),
      processingTimeTrigger(),
      continuousTrigger({ everyMs: 1_000 }),
      continuousTrigger({ everyMs: 1_000, time: 'processing' }),
    ]
    const meanings = triggers
      .filter(({ endOf }) => endOf !== 'processing')
      .map((trigger) => {
        const type = typeInfoOf<unknown>('any')
        const lateTags = { left: undefined, right: undefined }
        const settings = { type, results: () => [], trigger, allowedLatenessMs: undefined, lateTags }
        return coGroupWork({ ...settings, assigner: globalWindow() }).timerMeaning
      })
    expect(processingTimeTrigger().name).toBe('processing time')
    expect(meanings).toEqual([
      "timers of the global window under the trigger 'count'",
      "timers of the global window under the trigger 'purging count'",
      "timers of the global window under the trigger 'event time'",
      "timers of the global window under the trigger 'continuous event time'",
      "timers of the global window under the trigger 'continuous processing time'",
    ])
  })
})
