// What short pods printed: their log, read once when they have ended.

import type { Clock } from '../runtime/base/environment.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { hasEnded, terminatedOf } from './pod-facts.ts'
import { purposeLabel } from './resources/labels.ts'
import { shortContainer } from './resources/origin-template.ts'

/** One line is the answer, and holds all reasons of a preflight; what the process logs may follow it. */
const lines = 50
const logBytesMax = 256 * 1024
/** A kubelet that does not tell for so long does not count: the answer is then "without an answer". */
const patienceMs = 20_000

interface Held {
  readonly output: string | undefined
  readonly sinceMs: number
}

export class PodOutputs {
  readonly #client: Pick<KubeClient, 'logs'>
  readonly #clock: Clock
  readonly #held = new Map<string, Held>()

  constructor(client: Pick<KubeClient, 'logs'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** undefined: there is none, yet. Rejects while the log of an ended pod cannot be read, for a bounded time. */
  async of(pod: KubeObject): Promise<string | undefined> {
    const uid = pod.metadata.uid!
    if (pod.metadata.labels?.[purposeLabel] === undefined || !hasEnded(pod)) return undefined
    // With an error the kubelet keeps the end of the log.
    const kept = answerOf(terminatedOf(pod)?.message)
    if (kept !== undefined) return kept
    const held = this.#held.get(uid)
    if (held?.output !== undefined) return held.output
    const sinceMs = held?.sinceMs ?? this.#clock.nowMs()
    try {
      const { namespace, name } = pod.metadata
      const at = { ...(namespace !== undefined && { namespace }), name }
      const log = await this.#client.logs(at, { container: shortContainer, lines, limitBytes: logBytesMax })
      const output = answerOf(log) ?? log
      this.#held.set(uid, { output, sinceMs })
      return output
    } catch (error) {
      this.#held.set(uid, { output: undefined, sinceMs })
      // Of a container that never ran there is none to be waited for, and the kubelet says so.
      const hasNone = error instanceof KubeError && error.status === 400
      if (!hasNone && this.#clock.nowMs() - sinceMs < patienceMs && terminatedOf(pod) !== undefined) throw error
      return undefined
    }
  }

  /** Forgets pods that are gone. */
  keepOnly(uids: ReadonlySet<string>): void {
    for (const uid of this.#held.keys()) if (!uids.has(uid)) this.#held.delete(uid)
  }
}

/** The last line that is an answer of `--output json`. */
function answerOf(text: string | undefined): string | undefined {
  return text?.split('\n').findLast((line) => {
    try {
      const value = JSON.parse(line) as unknown
      return typeof value === 'object' && value !== null && ('outcome' in value || 'answer' in value)
    } catch {
      return false
    }
  })
}
