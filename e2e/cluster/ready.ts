// A cluster with everything on its nodes that scenarios and figures need.

import type { Cluster } from './contract.ts'
import { imageName, millraceImage } from './image.ts'
import { helmUninstall, isInstalled, loadServerImages } from './installation.ts'
import { step } from './step.ts'

export interface ReadyOptions {
  /** Use the cluster that an earlier run kept, if it answers. */
  readonly keep: boolean
  /** One that an existing cluster has or pulls; undefined: it is packed here. */
  readonly image: string | undefined
}

/** Resolves with the image of runtime and operator. */
export async function clusterReady(cluster: Cluster, { keep, image }: ReadyOptions): Promise<string> {
  await step('cluster up', () => cluster.up({ reuse: keep }))
  await loadServerImages(cluster)
  // An operator that an earlier run left is of that run's image and chart; the first scenario installs what is here now.
  if (await isInstalled(cluster)) await step('an earlier installation goes', () => helmUninstall(cluster))
  if (image !== undefined) return image
  const archive = await millraceImage()
  await step('image onto the nodes', () => cluster.loadImage(archive))
  return imageName
}
