// The stores of one job at its address, s3:// or file://.

import type { Environment } from '../base/environment.ts'
import type {
  FileSystem,
  ForeignObjects,
  ObjectKey,
  OpenedStores,
  OwnedSavepointStore,
  StorageConfig,
} from './contract.ts'
import { ForeignFiles } from './foreign-files.ts'
import { attachLocalStores, openLocalStores } from './local-stores.ts'
import {
  isAbsoluteKey,
  joinPath,
  keyOutside,
  objectsFolder,
  parentOf,
  parseFileKey,
  parseS3Key,
  parseStorageAddress,
  s3Key,
  s3ObjectsPrefix,
  storageAddressText,
} from './paths.ts'
import type { StorageAddress } from './paths.ts'
import { aboutSavepoints, claimSavepoints, isClaimed, savepointsAddress, storeAddress } from './savepoint-place.ts'
import { checkS3Settings } from './s3/s3-settings.ts'
import { S3Stores } from './s3/s3-stores.ts'
import type { S3Address } from './s3/s3-stores.ts'
import type { S3Requests } from './s3/requests.ts'

export interface OpenStoresOptions {
  readonly storage: StorageConfig
  readonly files: FileSystem
  readonly environment: Environment
  /** For the process that will own the job: a store that ignores conditions is refused (MR-S06). */
  readonly probe: boolean
  /** Instead of the SDK's, for tests. */
  readonly requests?: S3Requests
}

/** Throws MR-S39 for settings that cannot be used; with `probe` also what the stores say against being used, and MR-S40. */
export async function openStores(options: OpenStoresOptions): Promise<OpenedStores> {
  const opening = openingOf(options)
  const place = savepointsAddress(options.storage)
  const stores = await openAt(parseStorageAddress(options.storage.checkpoints), opening)
  if (place === undefined) return { ...stores, savepoints: undefined }
  try {
    const { savepoints, removeLeftovers, close } = await openPlaceAt(place, opening)
    return {
      ...stores,
      savepoints,
      removeLeftovers: async () => void (await Promise.all([stores.removeLeftovers(), removeLeftovers()])),
      close: async () => void (await Promise.all([stores.close(), close()])),
    }
  } catch (error) {
    await stores.close()
    throw error
  }
}

export interface OpenedSavepoints extends Pick<OpenedStores, 'removeLeftovers' | 'close'> {
  readonly savepoints: OwnedSavepointStore
}

/** The place for savepoints alone, of a job whose other stores are open; undefined: there is none. Throws as openStores does. */
export async function openSavepoints(options: OpenStoresOptions): Promise<OpenedSavepoints | undefined> {
  const place = savepointsAddress(options.storage)
  return place === undefined ? undefined : openPlaceAt(place, openingOf(options))
}

/** One client of S3 for both places. */
interface Opening extends Omit<OpenStoresOptions, 'requests'> {
  readonly requests: () => Promise<S3Requests>
}

function openingOf(options: OpenStoresOptions): Opening {
  checkS3Settings(options.storage.s3 ?? {})
  let requests: Promise<S3Requests> | undefined
  return { ...options, requests: () => (requests ??= requestsOf(options)) }
}

type StoresAt = Omit<OpenedStores, 'savepoints'>

function openAt(address: StorageAddress, opening: Opening): Promise<StoresAt> {
  return address.kind === 's3' ? openS3(address, opening) : openFolder(address.folder, opening)
}

async function openPlaceAt(address: StorageAddress, opening: Opening): Promise<OpenedSavepoints> {
  const text = storageAddressText(address)
  const store = storeAddress(opening.storage)
  let stores: StoresAt | undefined
  try {
    stores = await openAt(address, opening)
    const { objects, removeLeftovers, close } = stores
    const claim = { objects, store }
    if (opening.probe) await claimSavepoints(claim)
    const named = async (): Promise<boolean> => {
      try {
        return await isClaimed(claim)
      } catch (error) {
        throw aboutSavepoints(error, text)
      }
    }
    return {
      savepoints: { objects, nameOf: (key) => keyOutside(address, key), isClaimed: named },
      removeLeftovers,
      close,
    }
  } catch (error) {
    await stores?.close()
    throw aboutSavepoints(error, text)
  }
}

async function openS3(address: S3Address, { files, environment, probe, requests }: Opening): Promise<StoresAt> {
  const stores = new S3Stores({ requests: await requests(), address, environment })
  try {
    if (probe) await stores.probe()
  } catch (error) {
    stores.close()
    throw error
  }
  const root = s3Key({ bucket: address.bucket, key: s3ObjectsPrefix(address.prefix) }).slice(0, -1)
  return {
    objects: stores.objects,
    head: stores.head,
    foreign: new ForeignStores({ files, s3: async () => stores.foreign }),
    locate: (manifest) => located(root, manifest),
    removeLeftovers: () => stores.removeLeftovers(),
    ping: () => stores.ping(),
    close: async () => stores.close(),
  }
}

async function openFolder(folder: string, { files, environment, probe, requests }: Opening): Promise<StoresAt> {
  const place = { files, folder, environment }
  const opened = probe ? await openLocalStores(place) : undefined
  const { objects, head } = opened ?? attachLocalStores(place)
  // A job in a folder may begin from a savepoint in S3; whoever does not asks for no connection.
  let s3: Promise<S3Stores> | undefined
  const openForeign = async (): Promise<S3Stores> =>
    new S3Stores({ requests: await requests(), address: { kind: 's3', bucket: '', prefix: '' }, environment })
  return {
    objects,
    head,
    foreign: new ForeignStores({ files, s3: async () => (await (s3 ??= openForeign())).foreign }),
    locate: (manifest) => located(objectsFolder(folder), manifest),
    removeLeftovers: async () => opened?.removeLeftovers(),
    ping: async () => void (await head.read()),
    close: async () => (await s3)?.close(),
  }
}

/** The SDK is loaded by those alone who use it: it takes a third of a second. */
async function requestsOf({ storage, files, environment, requests }: OpenStoresOptions): Promise<S3Requests> {
  if (requests !== undefined) return requests
  const { sdkRequests } = await import('./s3/platform/sdk-requests.ts')
  return sdkRequests({ config: storage.s3 ?? {}, files, clock: environment.clock })
}

/** The folder of a manifest, as a person names it. */
function located(root: string, manifest: ObjectKey): string {
  if (!isAbsoluteKey(manifest)) return parentOf(joinPath(root, manifest))
  return parseS3Key(manifest) === undefined ? parentOf(parseFileKey(manifest)) : parentOf(manifest)
}

/** By the scheme of the key. */
class ForeignStores implements ForeignObjects {
  readonly #files: ForeignFiles
  readonly #s3: () => Promise<ForeignObjects>

  constructor({ files, s3 }: { readonly files: FileSystem; readonly s3: () => Promise<ForeignObjects> }) {
    this.#files = new ForeignFiles(files)
    this.#s3 = s3
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    return (await this.#of(key)).read(key)
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    return (await this.#of(key)).readRange(key, offset, length)
  }

  async #of(key: ObjectKey): Promise<ForeignObjects> {
    return parseS3Key(key) === undefined ? this.#files : this.#s3()
  }
}
