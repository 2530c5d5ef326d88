// From a process config: where its coordinator's REST is, and how it is asked as the owner.

import { NodeFiles } from '../local/platform/node-files.ts'

export interface RemoteFiles {
  readonly address: string
  readonly tokenFile: string
  readonly caFile: string | undefined
}

/** Throws MR-D30 and others for a config that the coordinator would refuse, too. */
export async function remoteFilesOf(path: string): Promise<RemoteFiles> {
  // It knows the clients of storage and NATS, which take as long to load as all else here.
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const { coordinator, tokens } = await loadProcessConfig(path, new NodeFiles())
  return {
    address: `${coordinator.tls === undefined ? 'http' : 'https'}://${coordinator.restAddress}`,
    tokenFile: tokens.ownerFile,
    caFile: coordinator.tls?.caFile,
  }
}
