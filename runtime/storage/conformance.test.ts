import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { NodeFiles } from '../local/platform/node-files.ts'
import { SeededRandom } from '../testkit/manual-clock.ts'
import { fileSystemClaims, headStoreClaims, objectStoreClaims } from './conformance.ts'
import type { FileSystem } from './contract.ts'
import { DirectoryHead } from './directory-head.ts'
import { DirectoryStore } from './directory-store.ts'
import { MemoryFiles } from './memory-files.ts'
import { MemoryHeadStore, MemoryObjectStore } from './memory-store.ts'

const temporary: string[] = []

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-storage-'))
  temporary.push(folder)
  return folder
}

afterAll(async () => {
  for (const folder of temporary) await rm(folder, { recursive: true, force: true })
})

const places: readonly {
  readonly name: string
  readonly make: () => Promise<{ files: FileSystem; folder: string }>
}[] = [
  {
    name: 'memory files',
    make: async () => {
      const files = new MemoryFiles()
      await files.makeDirectory('/place')
      return { files, folder: '/place' }
    },
  },
  { name: 'the real file system', make: async () => ({ files: new NodeFiles(), folder: await temporaryFolder() }) },
]

let seed = 1
const environment = () => ({ random: new SeededRandom(seed++), log: () => undefined })

for (const place of places) {
  describe(`${place.name} as a file system`, () => {
    for (const { claim, holds } of fileSystemClaims) it(claim, () => holds(place.make))
  })

  describe(`a directory of ${place.name} as an object store`, () => {
    const make = async () => {
      const { files, folder } = await place.make()
      const open = () => new DirectoryStore({ files, root: `${folder}/objects`, environment: environment() })
      return { one: open(), other: open() }
    }
    for (const { claim, holds } of objectStoreClaims) it(claim, () => holds(make))
  })

  describe(`a directory of ${place.name} as a store of HEAD`, () => {
    const make = async () => {
      const { files, folder } = await place.make()
      const open = () => new DirectoryHead({ files, folder: `${folder}/head`, environment: environment() })
      return { one: open(), other: open() }
    }
    for (const { claim, holds } of headStoreClaims) it(claim, () => holds(make))
  })
}

describe('memory as an object store', () => {
  const make = async () => {
    const store = new MemoryObjectStore()
    return { one: store, other: store }
  }
  for (const { claim, holds } of objectStoreClaims) it(claim, () => holds(make))
})

describe('memory as a store of HEAD', () => {
  const make = async () => {
    const store = new MemoryHeadStore()
    return { one: store, other: store }
  }
  for (const { claim, holds } of headStoreClaims) it(claim, () => holds(make))
})
