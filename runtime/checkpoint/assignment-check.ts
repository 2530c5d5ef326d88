// Whether a restore point fits a job graph. Each refusal names the operator and what to do; none is silent (style.md 15).

import type { MillraceError } from '../base/errors.ts'
import type { VertexId } from '../base/ids.ts'
import type { JobGraph, JobVertex } from '../job/contract.ts'
import type { RestoreOptions } from './assignment.ts'
import { checkpointError } from './errors.ts'
import type { Manifest } from './manifest.ts'
import { hasKeyedState, keyedStateNamesOf, stateNamesOf, transactionsOf } from './recorded-operators.ts'
import type { RecordedOperator } from './recorded-operators.ts'
import { unreadableStates } from './state-fit.ts'
import { stateNotTaken, takersOf, transactionsNotTaken } from './taken-state.ts'

export interface Fit {
  readonly manifest: Manifest
  readonly graph: JobGraph
  readonly recorded: ReadonlyMap<string, RecordedOperator>
  readonly finishedBefore: ReadonlySet<VertexId>
  readonly options: RestoreOptions
}

/** Returns the uids whose state is dropped as allowed. Throws MR-C10 to MR-C18, and MR-T02 or MR-T03 for keyed state that today's job cannot read. */
export function refuseWhatDoesNotFit(fit: Fit): string[] {
  const first = misfits(fit).next()
  if (first.done !== true) throw first.value
  return first.value
}

/** Everything that does not fit, the gravest first; at the end the uids whose state is dropped as allowed. */
export function* misfits(fit: Fit): Misfits<string[]> {
  const uids = yield* givenUids(fit.graph)
  yield* otherMaxParallelism(fit)
  yield* unnamedTakeover(fit, uids)
  yield* lostKeys(fit)
  yield* newDataForFinished(fit)
  yield* readAgain(fit)
  yield* unreadableStates(fit.graph, fit.recorded)
  return yield* notTaken(fit)
}

type Misfits<Result = void> = Generator<MillraceError, Result>

/** By uid whether the job gave it. */
function* givenUids(graph: JobGraph): Misfits<ReadonlyMap<string, boolean>> {
  const uids = new Map<string, boolean>()
  for (const { uid, uidGiven, name } of graph.vertices.flatMap((vertex) => vertex.chain)) {
    if (uids.has(uid)) yield checkpointError('MR-C13', `uid ${uid}, the second time at ${name}.`)
    uids.set(uid, uidGiven)
  }
  return uids
}

/** By operator and not by job: only key groups depend on the number, and each operator has its own. */
function* otherMaxParallelism({ manifest, graph, recorded }: Fit): Misfits {
  for (const vertex of graph.vertices) {
    const keyed = keyedOperatorsOf(vertex, recorded)
    if (new Set(keyed.map(({ maxParallelism }) => maxParallelism)).size > 1) {
      const each = keyed.map(({ uid, maxParallelism }) => `${uid} ${maxParallelism}`).join(', ')
      yield checkpointError('MR-C15', `Vertex ${vertex.name}: ${each}.`)
    }
    for (const { uid, maxParallelism } of keyed) {
      if (maxParallelism === vertex.maxParallelism) continue
      yield checkpointError(
        'MR-C10',
        `Operator ${uid} has ${vertex.maxParallelism}, ${describe(manifest)} has ${maxParallelism}.`,
      )
    }
  }
}

function keyedOperatorsOf(vertex: JobVertex, recorded: ReadonlyMap<string, RecordedOperator>): RecordedOperator[] {
  return vertex.chain.flatMap(({ uid }) => {
    const operator = recorded.get(uid)
    return operator !== undefined && hasKeyedState(operator) ? [operator] : []
  })
}

/** Only the first operator of a vertex behind a keyBy has a backend that could read it. */
function* lostKeys({ manifest, graph, recorded, finishedBefore }: Fit): Misfits {
  for (const { id, chain, keySelectors } of graph.vertices) {
    if (finishedBefore.has(id)) continue
    for (const [index, { uid, name }] of chain.entries()) {
      const names = keyedStateNamesOf(recorded.get(uid))
      if (names.length === 0 || (index === 0 && keySelectors.some((keySelector) => keySelector !== undefined))) continue
      yield checkpointError('MR-C18', `Operator ${name} (uid ${uid}): ${describe(manifest)} has ${names.join(', ')}.`)
    }
  }
}

/** Finished with its vertex, which is another today: without its enumerator's state its source would begin anew. */
function* readAgain({ manifest, graph, recorded, finishedBefore }: Fit): Misfits {
  for (const { id, chain } of graph.vertices) {
    const { uid, name, factory } = chain[0]!
    const operator = recorded.get(uid)
    const isLost = operator?.whollyFinished === true && operator.enumerator === undefined
    if (factory.kind !== 'source' || finishedBefore.has(id) || !isLost) continue
    yield checkpointError('MR-C19', `Source ${name} (uid ${uid}), in ${describe(manifest)}.`)
  }
}

function* unnamedTakeover({ graph, recorded }: Fit, uids: ReadonlyMap<string, boolean>): Misfits {
  if (graph.settings.autoUid) return
  for (const [uid, given] of uids) {
    const operator = recorded.get(uid)
    if (given || operator === undefined) continue
    const names = [...stateNamesOf(operator), ...transactionsOf(operator)]
    if (names.length > 0) yield checkpointError('MR-C14', `Operator ${uid}: ${names.slice(0, 5).join(', ')}.`)
  }
}

/** A finished vertex has fired its last timers and forwarded its last watermark: whatever came now would be late and lost. */
function* newDataForFinished({ graph, finishedBefore }: Fit): Misfits {
  for (const { source, target } of graph.edges) {
    if (!finishedBefore.has(target) || finishedBefore.has(source)) continue
    yield checkpointError('MR-C16', `Vertex ${target}, from ${source}.`)
  }
}

/** What no operator takes: its uid is missing, or of an operator that has no use for it. */
function* notTaken({ manifest, graph, recorded, finishedBefore, options }: Fit): Misfits<string[]> {
  const takers = takersOf(graph)
  const dropped: string[] = []
  for (const operator of recorded.values()) {
    const taker = takers.get(operator.uid)
    const kind = taker === undefined ? '' : ', which an operator of another kind has now'
    const where = `uid ${operator.uid} in ${describe(manifest)}${kind}`
    const transactions = transactionsNotTaken(operator, taker?.operator)
    if (transactions.length > 0 && !options.commitsConfirmed) {
      const some = transactions.slice(0, 3).join(', ')
      yield checkpointError('MR-C12', `${where}: ${transactions.length} transactions (${some}).`)
    }
    // A finished vertex runs nothing that could take it: what it holds stands in its final state.
    if (taker !== undefined && finishedBefore.has(taker.vertex)) continue
    const names = stateNotTaken(operator, taker?.operator)
    if (names.length === 0) continue
    if (options.allowNonRestoredState) dropped.push(operator.uid)
    else yield checkpointError('MR-C11', `${where}, with ${names.join(', ')}.`)
  }
  return dropped
}

function describe(manifest: Manifest): string {
  return `${manifest.kind} ${manifest.id} of ${manifest.job}`
}
