// What a failed scenario leaves to read: events, objects and logs, a folder a scenario.

import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cluster } from './contract.ts'

/** Below the current folder; ignored by git. */
const outFolder = join('out', 'e2e')
/** Never written to a file. */
const secret = new Set(['secrets', 'events', 'events.events.k8s.io'])
const deadlineMs = 60_000

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string }
    readonly spec: Readonly<Record<'containers' | 'initContainers', readonly { readonly name: string }[] | undefined>>
  }[]
}

export async function collect(
  { kubectl }: Pick<Cluster, 'kubectl'>,
  scenario: string,
  namespaces: readonly string[],
): Promise<string> {
  const folder = join(outFolder, scenario)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const failures: string[] = []
  const keep = async (file: string, args: readonly string[]): Promise<string> => {
    try {
      const { stdout } = await kubectl(args, { deadlineMs })
      if (stdout !== '') await writeFile(join(folder, file), stdout)
      return stdout
    } catch (error) {
      failures.push(`${file}: ${(error as Error).message}`)
      return ''
    }
  }
  await keep('nodes.txt', ['describe', 'nodes'])
  const kinds = await keep('kinds.txt', ['api-resources', '--namespaced', '--verbs=list', '-o', 'name'])
  const shown = kinds.split('\n').filter((kind) => kind !== '' && !secret.has(kind))
  for (const namespace of namespaces) {
    const at = ['--namespace', namespace]
    await keep(`${namespace}-events.txt`, [...at, 'get', 'events', '--sort-by=.lastTimestamp', '-o', 'wide'])
    if (shown.length > 0)
      await keep(`${namespace}-objects.yaml`, [...at, 'get', shown.join(','), '--ignore-not-found', '-o', 'yaml'])
    for (const [pod, container] of podContainers(
      await keep(`${namespace}-pods.json`, [...at, 'get', 'pods', '-o', 'json']),
    )) {
      const log = [...at, 'logs', pod, '-c', container, '--timestamps']
      await keep(`${namespace}-${pod}-${container}.log`, log)
      // Most containers have no life before.
      const before = await kubectl([...log, '--previous'], { deadlineMs, anyCode: true }).catch(() => undefined)
      if (before?.code === 0)
        await writeFile(join(folder, `${namespace}-${pod}-${container}-before.log`), before.stdout)
    }
  }
  if (failures.length > 0) await writeFile(join(folder, 'not-collected.txt'), failures.join('\n'))
  return folder
}

function podContainers(pods: string): (readonly [pod: string, container: string])[] {
  if (pods === '') return []
  return (JSON.parse(pods) as PodList).items.flatMap(({ metadata, spec }) =>
    [...(spec.initContainers ?? []), ...(spec.containers ?? [])].map(({ name }) => [metadata.name, name] as const),
  )
}
