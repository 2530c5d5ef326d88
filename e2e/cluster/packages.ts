// Debian packages that a cluster on this machine needs; installed where a program of theirs is missing.

import { existsSync } from 'node:fs'
import { run } from './run.ts'
import { step } from './step.ts'

/** Where each package's program lies, and what it is for. */
const packages: Readonly<Record<string, { readonly file: string }>> = {
  'docker.io': { file: '/usr/sbin/dockerd' },
  containerd: { file: '/usr/bin/containerd' },
  runc: { file: '/usr/sbin/runc' },
  iptables: { file: '/usr/sbin/iptables' },
  iproute2: { file: '/usr/sbin/ip' },
  debootstrap: { file: '/usr/sbin/debootstrap' },
  'busybox-static': { file: '/bin/busybox' },
}
const installDeadlineMs = 600_000

/** Rejects, naming them, when packages are missing and cannot be installed. */
export async function needPackages(): Promise<void> {
  const missing = Object.keys(packages).filter((name) => !existsSync(packages[name]!.file))
  if (missing.length === 0) return
  const needs = `as root on Debian or Ubuntu: apt-get install ${missing.join(' ')}`
  await step(`install ${missing.join(' ')}`, async () => {
    await run('apt-get', ['update', '-qq'], { deadlineMs: installDeadlineMs, needs })
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...missing], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
      deadlineMs: installDeadlineMs,
      needs,
    })
  })
}
