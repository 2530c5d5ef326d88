// A cache of one type of object: list, watch with bookmarks, and list again, which is the truth (kubernetes.md rule 10). A watch may be dead
// without a word; so it is ended from here after a while, and everything is listed again from time to time whatever the watch says.

import type { Clock, Random, Timer } from '../../runtime/base/environment.ts'
import { KubeError } from './contract.ts'
import type { KubeClient, KubeObject, ListOptions, ResourceType, WatchEvent, Watching } from './contract.ts'

/** How long one watch lasts. */
const watchSeconds = 240
/** A watch that ends sooner, without an error, is not asked for again at once (B28). */
const watchMsMin = 1_000
/** From one list to the next, though the watch is well. */
const relistMs = 10 * 60_000
const backOffMsMin = 500
const backOffMsMax = 30_000
/** Who was followed for so long was well: what breaks then is no part of the trouble before. */
const followedMsMin = 15_000
/** However long the server asks to be left alone: some tries must fit into what a cache may be stale. */
const askedMsMax = 60_000
/** A cache that was not heard of for so long is stale: changes may be missing. */
export const staleAfterMs = 5 * 60_000

export interface InformerOptions extends ListOptions {
  readonly client: KubeClient
  readonly type: ResourceType
  readonly clock: Clock
  readonly random: Random
  readonly log: (level: 'debug' | 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void
  /** An object is there, has changed, or is gone. */
  readonly onChange: (object: KubeObject, gone: boolean) => void
}

export class Informer {
  readonly #options: InformerOptions
  readonly #objects = new Map<string, KubeObject>()
  #listedMs: number | undefined
  /** The last sign of life: a list, an event, a bookmark. */
  #heardMs: number | undefined
  #backOffMs = backOffMsMin
  #watching: Watching | undefined
  #timer: Timer | undefined
  #closed = false
  #ready: PromiseWithResolvers<void> = Promise.withResolvers()

  constructor(options: InformerOptions) {
    this.#options = options
  }

  /** Of its kind; what it holds of objects of metadata alone is another cache. */
  get name(): string {
    return `${this.#options.type.kind}${this.#options.metadataOnly === true ? ' (metadata)' : ''}`
  }

  /** undefined: all. */
  get namespace(): string | undefined {
    return this.#options.namespace
  }

  start(): void {
    void this.#run()
  }

  /** The first list is there. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Since it was last heard that nothing is missing; Infinity before the first list. */
  get ageMs(): number {
    return this.#heardMs === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.nowMs() - this.#heardMs
  }

  get(namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#objects.get(keyOf(namespace, name))
  }

  all(): readonly KubeObject[] {
    return [...this.#objects.values()]
  }

  /** Own writes are seen at once, not when the watch brings them: an older version never replaces a newer one of the same life. */
  wrote(object: KubeObject): void {
    this.#put(this.#kept(object))
  }

  /** The server has said that this very object is gone. */
  removed({ metadata }: KubeObject): void {
    const key = keyOf(metadata.namespace, metadata.name)
    const known = this.#objects.get(key)
    if (known === undefined || known.metadata.uid !== metadata.uid) return
    this.#objects.delete(key)
    this.#options.onChange(known, true)
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#watching?.close()
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      let followedMs = Number.POSITIVE_INFINITY
      try {
        const resourceVersion = await this.#list()
        followedMs = this.#options.clock.nowMs()
        this.#ready.resolve()
        await this.#watchFrom(resourceVersion)
      } catch (error) {
        if (this.#closed) return
        if (this.#options.clock.nowMs() - followedMs >= followedMsMin) this.#backOffMs = backOffMsMin
        const refused = error instanceof KubeError ? error : undefined
        // The back-off comes on top: who is asked again after a second, again and again, and by all caches at once, is no better off (429).
        const askedMs = Math.min(refused?.retryAfterMs ?? 0, askedMsMax)
        const pauseMs = askedMs + this.#backOffMs * (0.5 + this.#options.random.next())
        this.#backOffMs = Math.min(backOffMsMax, this.#backOffMs * 2)
        // A version that is gone is everyday life: an API server forgets after some minutes.
        this.#options.log(refused?.status === 410 ? 'info' : 'warn', 'a cache lost its source and begins again', {
          type: this.#options.type.kind,
          error: error instanceof Error ? error.message : String(error),
          inMs: Math.round(pauseMs),
        })
        await this.#pause(pauseMs)
      }
    }
  }

  /** The whole list replaces what is known: what is missing in it is gone, unless it was written after the list was made. */
  async #list(): Promise<string> {
    const { client, type, onChange, clock } = this.#options
    const { items, resourceVersion } = await client.list(type, this.#options)
    const seen = new Set<string>()
    for (const item of items) {
      seen.add(keyOf(item.metadata.namespace, item.metadata.name))
      this.#put(item)
    }
    for (const [key, object] of this.#objects) {
      if (seen.has(key) || isNewerThan(object, resourceVersion)) continue
      this.#objects.delete(key)
      onChange(object, true)
    }
    this.#listedMs = clock.nowMs()
    this.#heardMs = this.#listedMs
    return resourceVersion
  }

  /** Resolves when it is time to list again; rejects when something broke, or the version is gone (410): a list tells what was missed. */
  async #watchFrom(first: string): Promise<void> {
    const { client, type, clock, namespace, labelSelector, metadataOnly } = this.#options
    let resourceVersion = first
    while (!this.#closed && clock.nowMs() - this.#listedMs! < relistMs) {
      const watching = client.watch(
        type,
        {
          namespace,
          labelSelector,
          ...(metadataOnly === true && { metadataOnly }),
          resourceVersion,
          timeoutSeconds: watchSeconds,
        },
        (event) => {
          resourceVersion = this.#heard(event) ?? resourceVersion
        },
      )
      this.#watching = watching
      const begunMs = clock.nowMs()
      await watching.ended
      if (!this.#closed && clock.nowMs() - begunMs < watchMsMin) await this.#pause(watchMsMin)
    }
  }

  #heard(event: WatchEvent): string | undefined {
    this.#heardMs = this.#options.clock.nowMs()
    this.#backOffMs = backOffMsMin
    if (event.type === 'BOOKMARK') return event.resourceVersion
    const { object } = event
    if (event.type === 'DELETED') {
      const key = keyOf(object.metadata.namespace, object.metadata.name)
      // A namesake that came after it stays.
      if (this.#objects.get(key)?.metadata.uid === object.metadata.uid) this.#objects.delete(key)
      this.#options.onChange(object, true)
    } else this.#put(this.#kept(object))
    return object.metadata.resourceVersion
  }

  /** A cache holds no more than somebody reads. */
  #kept(object: KubeObject): KubeObject {
    return this.#options.keep?.(object) ?? object
  }

  #put(object: KubeObject): void {
    const key = keyOf(object.metadata.namespace, object.metadata.name)
    const known = this.#objects.get(key)
    if (known !== undefined && isOlder(object, known)) return
    this.#objects.set(key, object)
    if (known?.metadata.resourceVersion !== object.metadata.resourceVersion) this.#options.onChange(object, false)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = this.#options.clock.timer(ms, resolve)
    })
  }
}

export function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`
}

/** Of the same life of an object. */
function isOlder({ metadata }: KubeObject, known: KubeObject): boolean {
  return metadata.uid === known.metadata.uid && isNewerThan(known, metadata.resourceVersion)
}

/** Versions are compared as numbers, which the API promises from 1.35 on and etcd has always given; what is none is never newer. */
function isNewerThan({ metadata }: KubeObject, resourceVersion: string | undefined): boolean {
  return Number(metadata.resourceVersion) > Number(resourceVersion)
}
