// Transcripts in testdata/coordinator/: a run of the coordinator as a play. A line with a time is an event, the indented lines below
// it are the actions it caused. To rewrite the actions after a wanted change: MILLRACE_UPDATE_TRANSCRIPTS=1, then read the diff.
//
//   job source:2 => count:2 -> sink:2!      `=>` every subtask feeds every one, `->` subtask i feeds i, `!` a two-phase sink
//   settings interval=1000 pause=0 …        milliseconds
//   settings first=at-once …                the start has completed none
//   1200 ack 1 source/0 count/1             `all`: everybody whose acknowledgement is missing
//   1200 ack 1 source/0 by 1.1              by a given attempt; else the present one
//   1200 refuse r1: no room                 from now on r1 cannot be carried out; `allow r1`: it can

import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkpointId, formatAttempt, incarnation, requestId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { Attempt, CheckpointId, RequestId, TaskId, TaskKey, VertexId } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { Halt } from '../record/element.ts'
import type { SubtaskSnapshot } from './contract.ts'
import type {
  CheckpointAction,
  CheckpointEvent,
  CheckpointSettings,
  CollectedSnapshot,
  Topology,
} from './core-contract.ts'
import { createCheckpointCoordinator } from './coordinator.ts'
import type { CheckpointCoordinator } from './coordinator.ts'

const folder = new URL('./testdata/coordinator/', import.meta.url)
const update = process.env['MILLRACE_UPDATE_TRANSCRIPTS'] === '1'

describe('transcripts of the checkpoint coordinator', () => {
  for (const name of readdirSync(folder)) {
    it(name.replace('.txt', '').replaceAll('-', ' '), () => {
      const written = readFileSync(new URL(name, folder), 'utf8')
      const played = new Play().run(written)
      if (update) writeFileSync(new URL(name, folder), played)
      else expect(played).toBe(written)
    })
  }
})

class Play {
  readonly #vertices = new Map<string, { parallelism: number; producers: Map<VertexId, boolean> }>()
  #settings: CheckpointSettings = {
    intervalMs: 1000,
    firstAtOnce: false,
    timeoutMs: 10_000,
    minPauseMs: 0,
    savepointTimeoutMs: 60_000,
    tolerableFailures: Infinity,
  }
  readonly #planted = new Set<PlantedFault>()
  readonly #refused = new Map<RequestId, string>()
  #coordinator: CheckpointCoordinator | undefined
  #lastId = 0
  readonly #attempts = new Map<TaskKey, Attempt>()
  readonly #lost = new Set<TaskKey>()
  readonly #nameOf = new Map<SubtaskSnapshot, string>()

  run(text: string): string {
    const lines: string[] = []
    for (const line of text.trimEnd().split('\n')) {
      if (line.startsWith('  ')) continue
      lines.push(line)
      if (line === '' || line.startsWith('#')) continue
      const [first = '', ...words] = line.split(' ')
      if (first === 'job') this.#readJob(words)
      else if (first === 'settings') this.#readSettings(words)
      else if (first === 'planted') this.#planted.add(words[0] as PlantedFault)
      else for (const action of this.#play(Number(first), words)) lines.push(`  ${this.#show(action)}`)
    }
    return `${lines.join('\n')}\n`
  }

  #readJob(words: readonly string[]): void {
    let previous: VertexId | undefined
    for (const [index, word] of words.entries()) {
      if (word === '->' || word === '=>') continue
      const [, name = '', parallelism = '1'] = /^(\w+)(?::(\d+))?$/.exec(word) ?? []
      const vertex = this.#vertices.get(name) ?? {
        parallelism: Number(parallelism),
        producers: new Map<VertexId, boolean>(),
      }
      this.#vertices.set(name, vertex)
      if (previous !== undefined) vertex.producers.set(previous, words[index - 1] === '->')
      previous = vertexId(name)
    }
  }

  #readSettings(words: readonly string[]): void {
    const given = Object.fromEntries(words.map((word) => word.split('=')))
    const number = (name: string, otherwise: number): number =>
      given[name] === undefined ? otherwise : Number(given[name])
    const { timeoutMs, minPauseMs, savepointTimeoutMs, tolerableFailures } = this.#settings
    this.#settings = {
      intervalMs: given['interval'] === 'off' ? undefined : number('interval', 1000),
      timeoutMs: number('timeout', timeoutMs),
      firstAtOnce: given['first'] === 'at-once',
      minPauseMs: number('pause', minPauseMs),
      savepointTimeoutMs: number('savepointTimeout', savepointTimeoutMs),
      tolerableFailures: number('tolerable', tolerableFailures),
    }
  }

  get #machine(): CheckpointCoordinator {
    if (this.#coordinator === undefined) {
      const topology: Topology = {
        vertices: [...this.#vertices].map(([name, { parallelism, producers }]) => ({
          id: vertexId(name),
          parallelism,
          producers: [...producers.keys()],
          forwardProducers: [...producers].filter(([, forward]) => forward).map(([producer]) => producer),
        })),
      }
      for (const { id, parallelism } of topology.vertices) {
        for (let index = 0; index < parallelism; index++)
          this.#lost.add(taskKey({ vertex: id, subtask: subtaskIndex(index) }))
      }
      this.#coordinator = createCheckpointCoordinator(
        topology,
        this.#settings,
        { next: () => checkpointId(++this.#lastId) },
        this.#planted,
        (request) => this.#refused.get(request),
      )
    }
    return this.#coordinator
  }

  #play(nowMs: number, words: readonly string[]): CheckpointAction[] {
    const machine = this.#machine
    const events = this.#events(words)
    return events.flatMap((event) => [...machine.step(event, nowMs)])
  }

  #events(words: readonly string[]): CheckpointEvent[] {
    const machine = this.#machine
    const sentence = words.join(' ')
    const [what, ...rest] = sentence.split(': ')
    const reason = rest.join(': ')
    const [verb = '', ...args] = what!.split(' ')
    const by = args.indexOf('by')
    const attempt = by === -1 ? undefined : readAttempt(args[by + 1]!)
    const named = (from: number): TaskId[] => {
      const names = args.slice(from, by === -1 ? undefined : by)
      return (names[0] === 'all' ? [...(machine.pending?.missing ?? [])] : names).map(readTask)
    }
    const speak = (task: TaskId) => ({
      task,
      attempt: attempt ?? this.#attempts.get(taskKey(task)) ?? readAttempt('1.1'),
    })
    const id = checkpointId(Number(args[0]))
    switch (verb) {
      case 'running': {
        for (const key of this.#lost) {
          this.#attempts.set(key, { incarnation: incarnation(1), number: (this.#attempts.get(key)?.number ?? 0) + 1 })
        }
        this.#lost.clear()
        return [{ type: 'allRunning', attempts: new Map(this.#attempts) }]
      }
      case 'lost':
        for (const task of named(0)) this.#lost.add(taskKey(task))
        return [{ type: 'subtasksLost', tasks: named(0) }]
      case 'tick':
        return [{ type: 'tick' }]
      case 'savepoint':
        return [{ type: 'savepointRequested', request: requestId(args[0]!), ...halt(args[1]) }]
      case 'checkpoint':
        return [{ type: 'checkpointRequested', request: args[0] === undefined ? undefined : requestId(args[0]) }]
      case 'rescale':
        return [{ type: 'checkpointRequested', request: requestId(args[0]!), halt: 'stop' }]
      case 'refuse':
        this.#refused.set(requestId(args[0]!), reason)
        return []
      case 'allow':
        this.#refused.delete(requestId(args[0]!))
        return []
      case 'move':
        return [{ type: 'checkpointRequested', request: undefined, halt: 'stop' }]
      case 'ack':
        return named(1).map((task) => {
          const said = speak(task)
          return { type: 'acknowledged', id, ...said, snapshot: this.#snapshot(task, said.attempt, id, false) }
        })
      case 'decline':
        return named(1).map((task) => ({ type: 'declined', id, ...speak(task), reason }))
      case 'finished':
        return named(0).map((task) => {
          const said = speak(task)
          return { type: 'finished', ...said, snapshot: this.#snapshot(task, said.attempt, undefined, true) }
        })
      case 'waits':
        return named(0).map((task) => ({ type: 'waitsForCheckpoint', ...speak(task) }))
      case 'trigger-failed':
        return [{ type: 'triggerFailed', id, reason }]
      case 'copy-begun':
        return [{ type: 'copyBegun', id }]
      case 'copy-progressed':
        return [{ type: 'copyProgressed', id }]
      case 'copied':
        return [{ type: 'copied', id }]
      case 'manifest-written':
        return [{ type: 'manifestWritten', id }]
      case 'manifest-failed':
        return [{ type: 'manifestFailed', id, reason }]
      case 'swap-won':
        return [{ type: 'swapWon', id }]
      case 'fenced':
        return [{ type: 'fenced' }]
      default:
        throw new Error(`no such event: ${sentence}`)
    }
  }

  #snapshot(task: TaskId, attempt: Attempt, id: CheckpointId | undefined, finished: boolean): SubtaskSnapshot {
    const snapshot = { operators: {}, finished, bytes: 0, syncMs: 0, asyncMs: 0, alignmentMs: 0 }
    this.#nameOf.set(
      snapshot,
      `${taskKey(task)} by ${formatAttempt(attempt)}, ${id === undefined ? 'final' : `for ${id}`}`,
    )
    return snapshot
  }

  #show(action: CheckpointAction): string {
    switch (action.type) {
      case 'trigger':
        return `trigger ${action.kind} ${action.id}${haltOf(action)} at ${tasks(action.tasks)}${action.request === undefined ? '' : ` (${action.request})`}`
      case 'triggerMore':
        return `trigger more ${action.id}${haltOf(action)} at ${tasks(action.tasks)}`
      case 'abort':
        return `abort ${action.id} ${action.reason}: ${action.detail}`
      case 'writeManifest':
        return `write manifest ${action.snapshot.id}${this.#finals(action.snapshot)}`
      case 'swap':
        return `swap ${action.snapshot.id}`
      case 'notifyComplete':
        return `complete ${action.id}`
      case 'savepointAnswered':
        return `answer ${action.request} ${action.outcome} ${action.id ?? '-'}: ${action.detail}`
      case 'discard':
        return `discard ${this.#nameOf.get(action.snapshot)}`
      case 'wakeIn':
        return `wake in ${action.delayMs}`
      case 'restartHalted':
        return `restart what halted for ${action.id}: ${action.detail}`
      case 'failJob':
        return `fail the job: ${action.reason}`
      default:
        return action satisfies never
    }
  }

  #finals(snapshot: CollectedSnapshot): string {
    const finals = [...snapshot.subtasks.values()].filter((entry) => entry.snapshot.finished).map((entry) => entry.task)
    return finals.length === 0 ? '' : `, final states of ${tasks(finals)}`
  }
}

function readTask(name: string): TaskId {
  const [vertex = '', index = ''] = name.split('/')
  return { vertex: vertexId(vertex), subtask: subtaskIndex(Number(index)) }
}

function readAttempt(text: string): Attempt {
  const [by = '', number = ''] = text.split('.')
  return { incarnation: incarnation(Number(by)), number: Number(number) }
}

/** `stop` or `drain` behind the request's name. */
function halt(word: string | undefined): { readonly halt?: Halt } {
  return word === 'stop' || word === 'drain' ? { halt: word } : {}
}

function haltOf(action: { readonly halt?: Halt | undefined }): string {
  return action.halt === undefined ? '' : ` to ${action.halt}`
}

function tasks(list: readonly TaskId[]): string {
  return list.map(taskKey).join(' ')
}
