// Every write of a reconcile: only while this process leads, conditional on the very object as it was observed, and seen in the caches at
// once. A version that was overtaken is read again and left to the next look.

import { errorsOf } from '../runtime/base/errors.ts'
import type { Caches } from './caches.ts'
import type { ObjectIdentity } from './contract.ts'
import { operatorErrors } from './errors.ts'
import { setFinalizer } from './finalize.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject, ResourceType } from './kubernetes/contract.ts'
import { typeOf, typeOfKind } from './kubernetes/types.ts'

const fail = errorsOf(operatorErrors)

export interface WriterOptions {
  readonly client: KubeClient
  readonly caches: Pick<Caches, 'get' | 'wrote' | 'removed'>
  readonly leading: () => boolean
}

export class Writer {
  readonly #options: WriterOptions

  constructor(options: WriterOptions) {
    this.#options = options
  }

  status(object: KubeObject, status: unknown): Promise<KubeObject> {
    return this.#write(object, (client) => client.putStatus(typeOf(object)!, object, status))
  }

  async finalizer(object: KubeObject, wanted: boolean): Promise<void> {
    this.#mustLead()
    const { client, caches } = this.#options
    const type = typeOf(object)!
    try {
      const written = await setFinalizer(client, object, wanted)
      if (written === undefined) return
      const { deletionTimestamp, finalizers = [] } = written.metadata
      // The last one was ours: with the answer it is gone.
      if (deletionTimestamp !== undefined && finalizers.length === 0) caches.removed(type, written)
      else caches.wrote(type, written)
    } catch (error) {
      if (error instanceof KubeError && error.notFound) return caches.removed(type, object)
      throw await this.#overtaken(object, error)
    }
  }

  /** One that is there already is it, if it is ours. Throws MR-P06 for somebody else's. */
  async create(object: KubeObject, isOurs: (there: KubeObject) => boolean): Promise<void> {
    const type = typeOf(object)!
    try {
      await this.#write(object, (client) => client.create(type, object))
    } catch (error) {
      if (!(error instanceof KubeError && error.exists)) throw error
      const { client, caches } = this.#options
      const { namespace, name } = object.metadata
      const there = await client.get(type, { ...(namespace !== undefined && { namespace }), name })
      if (there === undefined) throw error
      if (!isOurs(there)) throw fail('MR-P06', `${object.kind} ${namespace}/${name}.`, error)
      caches.wrote(type, there)
    }
  }

  apply(object: KubeObject, options: { readonly force: boolean }): Promise<KubeObject> {
    return this.#write(object, (client) => client.apply(typeOf(object)!, object, options))
  }

  /** Fields of an object that was observed. */
  patch(of: ObjectIdentity, changes: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    const type = typeOfKind(of.kind)!
    const { namespace, name, uid, resourceVersion } = of
    return this.#write(objectOf(type, of), (client) =>
      client.patch(type, { namespace, name }, { metadata: { uid, resourceVersion }, ...changes }),
    )
  }

  /** `force`: at once, without the kubelet's word. Of what is gone: succeeds. */
  async delete(of: ObjectIdentity, { force }: { readonly force: boolean }): Promise<void> {
    this.#mustLead()
    const { client, caches } = this.#options
    const type = typeOfKind(of.kind)!
    const { namespace, name, uid, resourceVersion } = of
    try {
      const left = await client.delete(
        type,
        { namespace, name },
        { precondition: { uid, resourceVersion }, ...(force && { gracePeriodSeconds: 0 }) },
      )
      if (left === undefined) caches.removed(type, objectOf(type, of))
      else caches.wrote(type, left)
    } catch (error) {
      throw await this.#overtaken(objectOf(type, of), error)
    }
  }

  async #write(object: KubeObject, send: (client: KubeClient) => Promise<KubeObject>): Promise<KubeObject> {
    this.#mustLead()
    const { client, caches } = this.#options
    try {
      const written = await send(client)
      caches.wrote(typeOf(object)!, written)
      return written
    } catch (error) {
      throw await this.#overtaken(object, error)
    }
  }

  /** By the clock: a process that was frozen finds out before it acts. */
  #mustLead(): void {
    if (!this.#options.leading()) throw fail('MR-P04', 'It has not been renewed in time.')
  }

  /** After a conflict the caches are to show what there is. Gives the error back. */
  async #overtaken(object: KubeObject, error: unknown): Promise<unknown> {
    const isOld = error instanceof KubeError && (error.conflict || error.notFound)
    if (!isOld) return error
    const { client, caches } = this.#options
    const type = typeOf(object)!
    const { namespace, name } = object.metadata
    const current = await client.get(type, { ...(namespace !== undefined && { namespace }), name }).catch(() => object)
    const known = caches.get(type, namespace, name)
    if (current === undefined) {
      if (known !== undefined) caches.removed(type, known)
    } else if (current !== object && known !== undefined) caches.wrote(type, current)
    return error
  }
}

function objectOf(type: ResourceType, { namespace, name, uid, resourceVersion }: ObjectIdentity): KubeObject {
  const { apiVersion, kind } = type
  return { apiVersion, kind, metadata: { namespace, name, uid, resourceVersion } }
}
