import type { Scenario } from '../cluster/scenario.ts'

const readyDeadlineS = 60

/** Exits with 0 only if the cluster's DNS knows its API server and does not know a stranger. */
const lookUps = `
  const { lookup } = require('node:dns/promises')
  const known = lookup('kubernetes.default.svc.cluster.local')
  const unknown = lookup('nobody.invalid').then(() => { throw new Error('nobody.invalid was found') }, () => 'unknown')
  Promise.all([known, unknown]).then(([{ address }, stranger]) => console.log(address, stranger))`

/** Before anything of ours can be at fault: nodes, DNS, our image as the least privileged of pods. */
export const scenario: Scenario = {
  name: 'cluster answers',
  core: true,
  run: async (cluster, { image, say }) => {
    const nodes = await cluster.nodes()
    const idle = nodes.filter(({ ready }) => !ready).map(({ name }) => name)
    if (nodes.length === 0 || idle.length > 0)
      throw new Error(`of ${nodes.length} nodes these are not Ready: ${idle.join()}`)
    say(`${nodes.length} nodes Ready`)

    const namespace = await cluster.makeNamespace('answers')
    await cluster.apply(
      [podOf('version', image, ['millrace', '--version']), podOf('names', image, ['node', '-e', lookUps])],
      {
        namespace,
      },
    )
    const said = async (pod: string): Promise<string> => {
      const at = ['--namespace', namespace]
      await cluster.kubectl([
        ...at,
        'wait',
        '--for=jsonpath={.status.phase}=Succeeded',
        `pod/${pod}`,
        `--timeout=${readyDeadlineS}s`,
      ])
      return (await cluster.kubectl([...at, 'logs', pod])).stdout.trim()
    }
    const version = await said('version')
    if (!/^(millrace )?\d+\.\d+\.\d+$/.test(version)) throw new Error(`millrace --version said "${version}"`)
    say(`millrace --version: ${version}`)
    const names = await said('names')
    const service = await cluster.get<{ readonly spec: { readonly clusterIP: string } }>([
      'get',
      'service',
      'kubernetes',
    ])
    if (names !== `${service.spec.clusterIP} unknown`) throw new Error(`names were resolved as "${names}"`)
    say(`DNS: ${names}`)
    await cluster.removeNamespace(namespace)
  },
}

const podOf = (name: string, image: string, command: readonly string[]): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'main',
        image,
        imagePullPolicy: 'IfNotPresent',
        command,
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      },
    ],
  },
})
