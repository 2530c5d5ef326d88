// An image of a kind node, built from Debian's packages, kind's own base files (they are in its Go module) and the programs of programs.ts: for
// machines that cannot pull the published one.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, chmod, cp, mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { packImage } from './archive.ts'
import { debianRoot } from './debian-root.ts'
import { clusterBuild, clusterProgram, kubernetesVersion, moduleFolder } from './programs.ts'
import type { Program } from './programs.ts'
import { run } from './run.ts'
import { step } from './step.ts'
import { images, packSystemImages } from './system-images.ts'
import { withWorkFolder } from './work-folder.ts'

/** What the image is made of, beside its sources here. */
const parts: readonly Program[] = ['coredns', 'pause', 'local-path-provisioner', 'kubelet']
const storeDeadlineMs = 300_000

export interface NodeImage {
  /** With a tag that is another for another content. */
  readonly name: string
  /** Path of its archive; built when it is not in the cache. */
  archive(): Promise<string>
}

export async function nodeImage(): Promise<NodeImage> {
  const hash = await contentHash()
  const name = `docker.io/millrace/kind-node:${kubernetesVersion}-${hash}`
  return { name, archive: () => nodeImageArchive(name, join(cacheFolder(), `node-image-${hash}.tar`)) }
}

async function nodeImageArchive(name: string, archive: string): Promise<string> {
  if (existsSync(archive)) return archive
  const debian = await debianRoot()
  return step('build the node image', () =>
    withWorkFolder(cacheFolder(), async (work) => {
      const root = join(work, 'root')
      await run('cp', ['-a', debian, root])
      await addKindFiles(root)
      await enableServices(root)
      await addKubernetes(root)
      await addManifests(root)
      const archives = await packSystemImages(join(work, 'images'), debian)
      await fillStore(root, archives)
      const part = join(work, 'node.tar')
      await packImage(part, {
        names: [name],
        layers: [{ root, keepOwners: true }],
        entrypoint: ['/usr/local/bin/entrypoint', '/sbin/init'],
        env: { container: 'docker' },
        stopSignal: 'SIGRTMIN+3',
      })
      await rename(part, archive)
      return archive
    }),
  )
}

async function contentHash(): Promise<string> {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(await clusterProgram(part))
  for (const name of ['node-image.ts', 'system-images.ts', 'root-files.ts', 'debian-root.ts', 'archive.ts'])
    hash.update(await readFile(fileURLToPath(new URL(name, import.meta.url))))
  return hash.digest('hex').slice(0, 12)
}

/** The entry point, units and configuration that kind's own build lays over a Debian. */
async function addKindFiles(root: string): Promise<void> {
  const files = join(await moduleFolder('sigs.k8s.io/kind'), 'images/base/files')
  for (const folder of ['usr/local/bin', 'kind', 'etc']) {
    await cp(join(files, folder), join(root, folder), { recursive: true, verbatimSymlinks: true })
    // Go's module cache is read-only, and the owner writes here.
    await run('chmod', ['-R', 'u+rwX,go+rX', join(root, folder)])
  }
  for (const folder of ['usr/local/bin', 'kind/bin'])
    for (const name of await readdir(join(root, folder))) await chmod(join(root, folder, name), 0o755)
  // Root here lacks CAP_SYS_RESOURCE: no score of the out-of-memory killer can be lowered.
  await edit(join(root, 'etc/containerd/config.toml'), [
    ['restrict_oom_score_adj = false', 'restrict_oom_score_adj = true'],
    ['registry.k8s.io/pause:3.10"', `${images.pause}"`],
  ])
  await edit(join(root, 'etc/systemd/system/containerd.service'), [['ExecStartPre=-/sbin/modprobe overlay', '']])
}

/** Of Debian's units none but what a node needs. */
async function enableServices(root: string): Promise<void> {
  const wanted = [
    'lib/systemd/system/multi-user.target.wants',
    'lib/systemd/system/local-fs.target.wants',
    'lib/systemd/system/basic.target.wants',
  ]
  const system = join(root, 'etc/systemd/system')
  for (const name of await readdir(system)) if (name.endsWith('.wants')) await empty(join(system, name))
  for (const folder of wanted) await empty(join(root, folder))
  await empty(join(root, 'lib/systemd/system/sockets.target.wants'), /udev|initctl/)
  await rm(join(root, 'lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service'), { force: true })
  await appendFile(join(root, 'etc/systemd/journald.conf'), 'ReadKMsg=no\n')
  await rm(join(root, 'sbin/init'), { force: true })
  await symlink('/lib/systemd/systemd', join(root, 'sbin/init'))
  const services = ['kubelet.service', 'containerd.service', 'undo-mount-hacks.service']
  await run('chroot', [root, 'systemctl', 'enable', ...services])
  await run('chroot', [root, 'systemctl', 'mask', 'systemd-binfmt.service'])
}

async function addKubernetes(root: string): Promise<void> {
  for (const folder of ['etc/kubernetes/manifests', 'opt/cni/bin', 'kind/manifests', 'LICENSES'])
    await mkdir(join(root, folder), { recursive: true })
  for (const name of ['containerd', 'ctr', 'containerd-shim-runc-v2'])
    await symlink(`/usr/bin/${name}`, join(root, 'usr/local/bin', name))
  for (const plugin of ['host-local', 'loopback', 'ptp', 'portmap'])
    await cp(join(root, 'usr/lib/cni', plugin), join(root, 'opt/cni/bin', plugin))
  // What each container starts from; the hook shows pods a machine id of their own, as kind's image does.
  const { stdout } = await run('chroot', [root, 'ctr', 'oci', 'spec'])
  const spec = JSON.parse(stdout) as { process: { rlimits?: unknown }; hooks?: { createContainer?: unknown[] } }
  spec.hooks = { createContainer: [{ path: '/kind/bin/mount-product-files.sh' }] }
  delete spec.process.rlimits
  await writeFile(join(root, 'etc/containerd/cri-base.json'), JSON.stringify(spec))
  await cp(join(await clusterBuild('kubernetes'), 'kubernetes'), join(root, 'usr/bin/kubernetes'))
  for (const program of ['kubelet', 'kubeadm', 'kubectl']) await symlink('kubernetes', join(root, 'usr/bin', program))
  await writeFile(join(root, 'kind/version'), kubernetesVersion)
}

/** kind's own manifests of the pod network and of storage, out of its source, with our images. */
async function addManifests(root: string): Promise<void> {
  const source = join(await moduleFolder('sigs.k8s.io/kind'), 'pkg/build/nodeimage')
  const network = await goText(join(source, 'const_cni.go'), 'defaultCNIManifest')
  const mended = replaceEach(network, [
    [/` \+ kindnetdImage \+ `/, `${images.programs}\n        command: [kindnetd]`],
    // Its own talks to containerd by a socket that the Debian one does not have.
    [/        - name: nri-plugin\n          mountPath: .*\n/, ''],
    [/      - name: nri-plugin\n        hostPath:\n          path: .*\n/, ''],
    [
      /resources:\n( +)requests:\n[\s\S]*?limits:\n.*\n.*\n/,
      'resources:\n$1requests:\n$1  cpu: "20m"\n$1  memory: "50Mi"\n',
    ],
    [/---\s*$/, ''],
  ])
  await writeFile(join(root, 'kind/manifests/default-cni.yaml'), mended)
  const storage = await goText(join(source, 'const_storage.go'), 'defaultStorageManifest')
  await writeFile(
    join(root, 'kind/manifests/default-storage.yaml'),
    storage
      .replaceAll('` + storageProvisionerImage + `', images.storage)
      .replaceAll('` + storageHelperImage + `', images.shell),
  )
}

/** Puts images into the store of the node's containerd, which runs here for that, in namespaces of its own. */
async function fillStore(root: string, archives: readonly string[]): Promise<void> {
  const store = join(root, 'var/lib/containerd')
  await mkdir(store, { recursive: true })
  const script = `
    mount -t tmpfs tmpfs /run
    mkdir /run/containerd
    containerd --root '${store}' --state /run/containerd --address /run/containerd/containerd.sock --log-level error &
    containerd=$!
    until ctr version >/dev/null 2>&1; do sleep 0.05; done
    for archive in "$@"; do ctr -n k8s.io images import "$archive"; done
    # The layers are unpacked: what they were unpacked from need not be carried along.
    ctr -n k8s.io content ls | awk '$2 ~ /MB|GB/ {print $1}' | xargs -r ctr -n k8s.io content rm
    # A removal that waits for the collection of garbage.
    ctr -n k8s.io images tag ${images.shell} collect >/dev/null
    ctr -n k8s.io images rm --sync collect >/dev/null
    kill $containerd
    wait $containerd || true`
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private']
  await run('unshare', [...namespaces, '/bin/sh', '-euc', script, 'fill', ...archives], {
    deadlineMs: storeDeadlineMs,
    needs: 'the Debian package containerd',
  })
  await empty(join(store, 'tmpmounts'))
  await run('find', [root, '-xdev', '-type', 's', '-delete'])
}

/** The text between back quotes of a Go constant; it may be put together of several. */
async function goText(file: string, constant: string): Promise<string> {
  const begin = `const ${constant} = \``
  const source = await readFile(file, 'utf8')
  const from = source.indexOf(begin)
  const to = source.indexOf('\n`\n', from)
  if (from < 0 || to < 0)
    throw new Error(`${file} has no constant ${constant} as expected: is it another version of kind?`)
  return source.slice(from + begin.length, to + 1)
}

async function edit(file: string, changes: readonly (readonly [string, string])[]): Promise<void> {
  const text = await readFile(file, 'utf8')
  await writeFile(file, replaceEach(text, changes))
}

/** Each must be there: a version of kind that words it otherwise would be built wrongly without a word. */
function replaceEach(text: string, changes: readonly (readonly [string | RegExp, string])[]): string {
  return changes.reduce((changed, [from, to]) => {
    const next = changed.replace(from, to)
    if (next === changed) throw new Error(`kind's files have no ${String(from)}: is it another version?`)
    return next
  }, text)
}

async function empty(folder: string, names = /^/): Promise<void> {
  const found = await readdir(folder).catch(() => [])
  for (const name of found) if (names.test(name)) await rm(join(folder, name), { recursive: true, force: true })
}
