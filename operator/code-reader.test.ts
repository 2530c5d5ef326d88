import { describe, expect, it } from 'vitest'
import { CodeReader } from './code-reader.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { codeHash } from './revision.ts'

function subject() {
  let version = 0
  let current: KubeObject | undefined
  let gets = 0
  /** What the cache shows: it may lag. */
  let shown: KubeObject | undefined
  const code = new CodeReader(
    {
      get: async () => {
        gets++
        return current
      },
    },
    () => shown,
  )
  const edit = (data: Readonly<Record<string, string>>): void => {
    const metadata = { name: 'code', namespace: 'n', uid: 'u', resourceVersion: String(++version) }
    current = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
  }
  return {
    code,
    edit,
    show: () => {
      shown = current
    },
    remove: () => {
      current = undefined
    },
    gets: () => gets,
  }
}

const first = { 'job.ts': 'x'.repeat(500_000), 'half.ts': 'export const half = 1' }
const second = { 'job.ts': 'second' }

describe('the code of a ConfigMap', () => {
  it('is known by its hash and its keys: what is in it is not held', async () => {
    const { code, edit, show, gets } = subject()
    edit(first)
    show()
    const read = await code.read('n', 'code')
    expect(read).toEqual({
      known: true,
      value: { kind: 'files', configMap: 'code', hash: codeHash(first), keys: ['job.ts', 'half.ts'] },
    })
    expect(await code.read('n', 'code')).toEqual(read)
    expect(gets()).toBe(1)
  })

  it('is read again where it is stored', async () => {
    const { code, edit, show, gets } = subject()
    edit(first)
    show()
    await code.read('n', 'code')
    expect(await code.filesOf('n', 'code', codeHash(first))).toEqual(first)
    expect(gets()).toBe(2)
  })

  it('is decided on again if it is other code by then, or gone, also while the cache lags', async () => {
    const { code, edit, show, remove } = subject()
    edit(first)
    show()
    await code.read('n', 'code')
    edit(second)
    await expect(code.filesOf('n', 'code', codeHash(first))).rejects.toMatchObject({ conflict: true })
    expect(await code.read('n', 'code')).toMatchObject({ value: { hash: codeHash(second) } })
    remove()
    await expect(code.filesOf('n', 'code', codeHash(second))).rejects.toMatchObject({ conflict: true })
    expect(await code.read('n', 'code')).toMatchObject({ value: { kind: 'missing' } })
  })
})
