// The code that a spec names in somebody's ConfigMap. ConfigMaps are watched as metadata; contents are read when their version has changed,
// and kept for as long as a job names them.

import type { CodeFact, Fact } from './contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { codeHash } from './revision.ts'

/** Of one object; with what the API server needs besides. */
const bytesMax = 1024 * 1024 - 16 * 1024

interface Held {
  readonly uid: string
  readonly resourceVersion: string
  readonly code: CodeFact
}

export class CodeReader {
  readonly #client: KubeClient
  readonly #metadataOf: (namespace: string, name: string) => KubeObject | undefined
  readonly #held = new Map<string, Held>()

  constructor(client: KubeClient, metadataOf: (namespace: string, name: string) => KubeObject | undefined) {
    this.#client = client
    this.#metadataOf = metadataOf
  }

  async read(namespace: string, name: string): Promise<Fact<CodeFact>> {
    const key = `${namespace}/${name}`
    const metadata = this.#metadataOf(namespace, name)?.metadata
    const held = this.#held.get(key)
    if (held !== undefined && held.uid === metadata?.uid && held.resourceVersion === metadata.resourceVersion)
      return { known: true, value: held.code }
    // One that the cache does not show may have been made a moment ago: the server is asked.
    try {
      const found = await this.#client.get(types.configMap, { namespace, name })
      if (found === undefined) {
        this.#held.delete(key)
        return { known: true, value: { kind: 'missing', why: `namespace ${namespace} has no such ConfigMap` } }
      }
      const code = codeOf(found)
      const { uid, resourceVersion } = found.metadata
      this.#held.set(key, { uid: uid!, resourceVersion: resourceVersion!, code })
      return { known: true, value: code }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      const isForbidden = error instanceof KubeError && error.status === 403
      const why = isForbidden ? `the operator may not read it (${error.message})` : error.message
      return { known: false, why }
    }
  }

  /** Forgets what no job names. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const key of this.#held.keys()) if (!names.has(key)) this.#held.delete(key)
  }
}

function codeOf(configMap: KubeObject): CodeFact {
  const files = (configMap['data'] ?? {}) as Readonly<Record<string, string>>
  let bytes = 0
  for (const [name, text] of Object.entries(files)) bytes += Buffer.byteLength(name) + Buffer.byteLength(text)
  return bytes > bytesMax ? { kind: 'too large', bytes } : { kind: 'files', hash: codeHash(files), files }
}
