// The programs of a cluster, built once from their published Go modules (go/go.mod pins each) into the user's cache.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, readdir, rename, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { run } from './run.ts'
import { step } from './step.ts'
import { withWorkFolder } from './work-folder.ts'

const source = fileURLToPath(new URL('./go', import.meta.url))

/** Cold, beside other builds, the largest takes twelve minutes on two processors. */
const buildDeadlineMs = 1_500_000

export const kubernetesVersion = 'v1.34.4'
const versionPackage = 'k8s.io/component-base/version'
const kubernetesFlags = Object.entries({
  gitVersion: kubernetesVersion,
  gitMajor: '1',
  gitMinor: '34',
  gitTreeState: 'clean',
  gitCommit: 'millrace-e2e',
  buildDate: '2026-01-01T00:00:00Z',
})
  .map(([name, value]) => `-X ${versionPackage}.${name}=${value}`)
  .join(' ')

/** Programs that are one binary: it acts as the one whose name it is called by. */
export const kubernetesPrograms = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
  'kubelet',
  'kubeadm',
  'kubectl',
  'etcd',
  'kindnetd',
] as const

const builds = {
  kubernetes: { package: './programs', flags: kubernetesFlags, links: kubernetesPrograms },
  coredns: { package: './coredns', flags: '', links: [] },
  pause: { package: './pause', flags: '', links: [] },
  kind: { package: 'sigs.k8s.io/kind', flags: '', links: [] },
  'local-path-provisioner': {
    package: 'github.com/rancher/local-path-provisioner',
    flags: '-X main.VERSION=v0.0.30',
    links: [],
  },
} as const

export type Build = keyof typeof builds
export type Program = Exclude<Build, 'kubernetes'> | (typeof kubernetesPrograms)[number]

const underway = new Map<Build, Promise<string>>()

/** Path of a program; built when it is not in the cache. Rejects with what is missing. */
export async function clusterProgram(program: Program): Promise<string> {
  const build: Build = program in builds ? (program as Build) : 'kubernetes'
  return join(await clusterBuild(build), program)
}

/** Folder with the build's binary (named as the build) and, for `kubernetes`, a link for each program. */
export function clusterBuild(build: Build): Promise<string> {
  let folder = underway.get(build)
  if (folder === undefined) {
    folder = built(build)
    underway.set(build, folder)
    folder.catch(() => underway.delete(build))
  }
  return folder
}

/** The folder in Go's module cache of a module that go.mod names: kind's own files lie there. */
export async function moduleFolder(module: string): Promise<string> {
  // Unlike `go list`, this fetches what is not there yet.
  const { stdout } = await run('go', ['mod', 'download', '-json', module], { cwd: source, needs: 'Go 1.25 or later' })
  return (JSON.parse(stdout) as { readonly Dir: string }).Dir
}

async function built(build: Build): Promise<string> {
  const folder = join(cacheFolder(), `cluster-${await sourceHash(build)}`, build)
  if (existsSync(folder)) return folder
  return step(`build ${build}`, () =>
    withWorkFolder(dirname(folder), async (work) => {
      const { package: name, flags, links } = builds[build]
      const part = join(work, build)
      const output = join(part, build)
      const go = ['go', 'build', '-mod=readonly', '-trimpath', '-ldflags', `-s -w ${flags}`, '-o', output, name]
      // One build at a time: of two, the second finds all in Go's cache. The lock ends with its process, in whatever way that ends.
      const lock = join(cacheFolder(), 'cluster-build.lock')
      await run('flock', [lock, 'nice', '-n', '15', ...go], {
        cwd: source,
        env: { CGO_ENABLED: '0' },
        deadlineMs: buildDeadlineMs,
        needs: 'Go 1.25 or later, and flock and nice of util-linux and coreutils',
      })
      for (const link of links) await symlink(build, join(part, link))
      // Another run may have put it there meanwhile: it is the same.
      await rename(part, folder).catch((error: unknown) => {
        if (!existsSync(folder)) throw error
      })
      return folder
    }),
  )
}

/** Names what is built: another version, source or flag is another folder. */
async function sourceHash(build: Build): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(builds[build]))
  const own = builds[build].package
  const sources = own.startsWith('./') ? (await readdir(join(source, own))).map((name) => join(own, name)) : []
  for (const name of ['go.mod', 'go.sum', ...sources.toSorted()])
    hash.update(`\n${name}\n`).update(await readFile(join(source, name)))
  return hash.digest('hex').slice(0, 12)
}
