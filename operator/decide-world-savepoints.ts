// What must hold of savepoints in the model world of the tests, whatever the operator does: one that was reported as completed was written, and
// is there until somebody asks for its disposal.

import type { Cluster } from './decide-world-cluster.ts'

/** Throws at the first that is not so. */
export function checkSavepoints({ savepoints, savepointsWritten, deeds, status }: Cluster): void {
  for (const { name, path: given, madeBy, status: said } of savepoints) {
    const reported = said?.state === 'completed' ? said.path : undefined
    // What a user names may be of another job.
    const path = given === undefined || madeBy === 'operator' ? (reported ?? given) : undefined
    if (said?.state === 'completed' && reported === undefined && given === undefined)
      throw new Error(`Savepoint ${name} is completed, and nobody knows where`)
    if (path !== undefined && !savepointsWritten.has(path))
      throw new Error(`Savepoint ${name} is at ${path}, which was never written`)
  }
  for (const { path } of status?.savepoints ?? [])
    if (path !== undefined && !savepointsWritten.has(path))
      throw new Error(`status names the savepoint at ${path}, which was never written`)
  for (const deed of deeds) if (deed.deed === 'deleted savepoint') checkDeletion(deed)
}

/** Nobody asked for it but spec.savepoints, which is about what it has made itself and what nothing begins from. */
function checkDeletion({
  savepoint: { name, madeBy, status },
  restorePoint,
}: Extract<Cluster['deeds'][number], { deed: 'deleted savepoint' }>): void {
  if (madeBy !== 'operator' || !/-p\d+$/.test(name)) throw new Error(`Savepoint ${name} was deleted unasked`)
  if (status?.state === 'pending' || status === undefined)
    throw new Error(`Savepoint ${name} was deleted before it was answered`)
  if (status.path !== undefined && status.path === restorePoint)
    throw new Error(`Savepoint ${name} was deleted, and the job begins from it`)
}
