// A minimal Debian, by debootstrap, for what a node runs beside Kubernetes: systemd, containerd, iptables.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { run } from './run.ts'
import { step } from './step.ts'
import { withWorkFolder } from './work-folder.ts'

const suite = 'bookworm'
const packages = [
  'systemd',
  'conntrack',
  'iptables',
  'nftables',
  'iproute2',
  'ethtool',
  'kmod',
  'ca-certificates',
  'jq',
  'procps',
  'containerd',
  'runc',
  'containernetworking-plugins',
  'busybox-static',
]
/** Of no use in a node. */
const ballast = [
  'var/lib/apt/lists',
  'var/cache/apt',
  'usr/share/doc',
  'usr/share/man',
  'usr/share/locale',
  'usr/share/info',
  'usr/share/i18n',
]
const deadlineMs = 600_000

/** Its folder; made when it is not in the cache. Nobody writes there: it is copied. */
export async function debianRoot(): Promise<string> {
  const name = createHash('sha256')
    .update(JSON.stringify([suite, packages, ballast]))
    .digest('hex')
    .slice(0, 12)
  const root = join(cacheFolder(), `debian-${name}`)
  if (existsSync(root)) return root
  return step('debootstrap', () =>
    withWorkFolder(cacheFolder(), async (work) => {
      const part = join(work, 'root')
      const include = `--include=${packages.join(',')}`
      await run('debootstrap', ['--variant=minbase', include, suite, part, await mirror()], {
        deadlineMs,
        needs: 'the Debian package debootstrap, and root',
      })
      for (const folder of ballast) await rm(join(part, folder), { recursive: true, force: true })
      await rename(part, root)
      return root
    }),
  )
}

/** Where this machine takes Debian's packages from. */
async function mirror(): Promise<string> {
  const format = '$(REPO_URI) $(CODENAME) $(ORIGIN)'
  const { stdout } = await run('apt-get', ['indextargets', '--format', format])
  const line = stdout.split('\n').find((text) => text.includes(` ${suite} `) && text.endsWith(' Debian'))
  if (line === undefined)
    throw new Error(
      `apt knows no archive of Debian ${suite}: run \`apt-get update\`, or use a cluster that is there already`,
    )
  return line.split(' ')[0]!
}
