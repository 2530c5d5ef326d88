// The images that a node has before its cluster begins: Kubernetes' own programs, DNS, the pause of a pod, storage, a shell.

import { copyFile, cp, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { packImage } from './archive.ts'
import type { ImageOptions } from './archive.ts'
import { clusterBuild, clusterProgram, kubernetesPrograms, kubernetesVersion } from './programs.ts'
import { addShell, copyInto } from './root-files.ts'
import { run } from './run.ts'
import { withWorkFolder } from './work-folder.ts'

/** As kubeadm of this version asks for them. */
const registry = 'registry.k8s.io'
export const images = {
  pause: `${registry}/pause:3.10.1`,
  coredns: `${registry}/coredns/coredns:v1.12.1`,
  programs: `docker.io/millrace/kubernetes:${kubernetesVersion}`,
  storage: 'docker.io/millrace/local-path-provisioner:v0.0.30',
  shell: 'docker.io/millrace/busybox:1',
} as const

/** Writes an archive of each into the folder; resolves with their paths. `debian`: a root with iptables and busybox. */
export async function packSystemImages(out: string, debian: string): Promise<string[]> {
  return withWorkFolder(out, async (work) => {
    const archives: string[] = []
    const pack = async (name: string, fill: (root: string) => Promise<void>, options: Omit<ImageOptions, 'layers'>) => {
      const root = join(work, name)
      await mkdir(root, { recursive: true })
      await fill(root)
      const archive = join(out, `${name}.tar`)
      await packImage(archive, { ...options, layers: [{ root }] })
      archives.push(archive)
    }
    const pause = await clusterProgram('pause')
    await pack('pause', (root) => copyFile(pause, join(root, 'pause')), {
      names: [images.pause],
      entrypoint: ['/pause'],
    })
    const coredns = await clusterProgram('coredns')
    await pack('coredns', (root) => copyFile(coredns, join(root, 'coredns')), {
      names: [images.coredns],
      entrypoint: ['/coredns'],
    })
    const storage = await clusterProgram('local-path-provisioner')
    // Its pods name this path.
    const storagePath = 'usr/local/bin/local-path-provisioner'
    await pack('storage', (root) => copyInto(storage, join(root, storagePath)), {
      names: [images.storage],
      entrypoint: [`/${storagePath}`],
    })
    await pack('shell', (root) => addShell(root, debian), { names: [images.shell], command: ['/bin/sh'] })
    const variants = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy']
    await pack('programs', (root) => addPrograms(root, debian), {
      names: [
        images.programs,
        ...variants.map((name) => `${registry}/${name}:${kubernetesVersion}`),
        `${registry}/etcd:3.6.5-0`,
      ],
    })
    return archives
  })
}

/** Kubernetes' programs with the iptables that kube-proxy calls. */
async function addPrograms(root: string, debian: string): Promise<void> {
  await addShell(root, debian)
  for (const folder of ['run', 'var/lib', 'usr/local/bin', 'usr/sbin'])
    await mkdir(join(root, folder), { recursive: true })
  const plugins = `usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/xtables`
  // Some are links to others there.
  await cp(join(debian, plugins), join(root, plugins), { recursive: true, verbatimSymlinks: true })
  const tools = ['usr/sbin/xtables-nft-multi', 'usr/sbin/xtables-legacy-multi', 'usr/sbin/nft']
  for (const tool of tools) await copyInto(join(debian, tool), join(root, tool))
  const needing = [...tools, ...(await readdir(join(debian, plugins))).map((name) => `${plugins}/${name}`)]
  for (const library of await librariesOf(needing, debian)) await copyInto(join(debian, library), join(root, library))
  for (const family of ['iptables', 'ip6tables'])
    for (const what of ['', '-save', '-restore'])
      await symlink('xtables-nft-multi', join(root, 'usr/sbin', `${family}${what}`))
  await copyInto(join(await clusterBuild('kubernetes'), 'kubernetes'), join(root, 'usr/local/bin/kubernetes'))
  for (const program of kubernetesPrograms) await symlink('kubernetes', join(root, 'usr/local/bin', program))
}

/** Paths of the shared libraries that these files of a root are linked with. */
async function librariesOf(files: readonly string[], root: string): Promise<string[]> {
  const { stdout } = await run('chroot', [root, 'ldd', ...files.map((file) => `/${file}`)], { anyCode: true })
  return [...new Set([...stdout.matchAll(/^\s.*?(\/lib\S+)/gm)].map(([, path]) => path!))]
}
