// The code that a spec names in somebody's ConfigMap. ConfigMaps are watched as metadata; contents are read when their version has changed,
// and again when they are stored: between the two only their hash is held, as there are many jobs and each may have 1 MiB of code.

import type { CodeFact, Fact } from './contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { codeHash } from './revision.ts'

/** Of one object; with what the API server needs besides. */
const bytesMax = 1024 * 1024 - 16 * 1024

export type CodeFiles = Readonly<Record<string, string>>

interface Held {
  readonly uid: string
  readonly resourceVersion: string
  readonly code: CodeFact
}

export class CodeReader {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #metadataOf: (namespace: string, name: string) => KubeObject | undefined
  readonly #held = new Map<string, Held>()

  constructor(
    client: Pick<KubeClient, 'get'>,
    metadataOf: (namespace: string, name: string) => KubeObject | undefined,
  ) {
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
      const { code } = await this.#get(namespace, name)
      return { known: true, value: code }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      const isForbidden = error instanceof KubeError && error.status === 403
      const why = isForbidden ? `the operator may not read it (${error.message})` : error.message
      return { known: false, why }
    }
  }

  /** Throws a conflict where it is not the code of this hash any more: what was decided on it is to be decided again. */
  async filesOf(namespace: string, name: string, hash: string): Promise<CodeFiles> {
    const { code, files } = await this.#get(namespace, name)
    if (code.kind === 'files' && code.hash === hash) return files
    throw new KubeError(409, 'Conflict', `ConfigMap ${namespace}/${name} has changed since it was decided on`)
  }

  async #get(namespace: string, name: string): Promise<{ readonly code: CodeFact; readonly files: CodeFiles }> {
    const found = await this.#client.get(types.configMap, { namespace, name })
    const key = `${namespace}/${name}`
    if (found === undefined) {
      this.#held.delete(key)
      return { code: { kind: 'missing', why: `namespace ${namespace} has no such ConfigMap` }, files: {} }
    }
    const files = (found['data'] ?? {}) as CodeFiles
    const code = codeOf(name, files)
    const { uid, resourceVersion } = found.metadata
    this.#held.set(key, { uid: uid!, resourceVersion: resourceVersion!, code })
    return { code, files }
  }

  /** Forgets what no job names. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const key of this.#held.keys()) if (!names.has(key)) this.#held.delete(key)
  }
}

function codeOf(configMap: string, files: CodeFiles): CodeFact {
  let bytes = 0
  for (const [name, text] of Object.entries(files)) bytes += Buffer.byteLength(name) + Buffer.byteLength(text)
  return bytes > bytesMax
    ? { kind: 'too large', bytes }
    : { kind: 'files', configMap, hash: codeHash(files), keys: Object.keys(files) }
}
