// Puts the largest of the cluster's programs into the cache before anything waits for it: of a cold CI run it is the longest build.

import { clusterBuild } from './programs.ts'
import { endCommands } from './run.ts'

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    endCommands()
    process.exit(1)
  })

await clusterBuild('kubernetes')
