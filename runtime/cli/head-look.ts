// What HEAD says of a job whose coordinator does not answer: it ends with its job. The process config says where HEAD is.

import { within } from '../base/deadline.ts'
import type { HeadSummary } from '../rest/resources.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { endWords, isOver } from './job-end.ts'

export type HeadLook =
  /** Nobody has anything to do for it any more. `store`: where HEAD lies. */
  | { readonly kind: 'over'; readonly head: HeadSummary; readonly store: string }
  /** A coordinator of it runs, or is to run. `says`: a sentence. */
  | { readonly kind: 'goes on'; readonly says: string }
  | { readonly kind: 'unknown'; readonly says: string }

/** Meanwhile its coordinator may be back, and knows more. */
const lookDeadlineMs = 5_000

/** Never rejects for a store that does not answer. Throws MR-D30 and others for the config. */
export async function lookAtHead(configFile: string): Promise<HeadLook> {
  // Clients of storage and NATS, which take as long to load as all else here.
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const files = new NodeFiles()
  const { job, storage } = await loadProcessConfig(configFile, files)
  const environment = realEnvironment({ log: () => undefined })
  const reading = async (): Promise<HeadSummary | undefined> => {
    const { openStores } = await import('../storage/open-stores.ts')
    const { HeadKeeper } = await import('../storage/head-keeper.ts')
    const { headView } = await import('../rest/job-views.ts')
    const stores = await openStores({ storage, files, environment, probe: false })
    try {
      const head = await (await HeadKeeper.open(stores.head, environment)).read()
      return head === undefined ? undefined : headView(head, ({ path }) => stores.locate(path))
    } finally {
      await stores.close()
    }
  }
  let head: HeadSummary | undefined
  try {
    head = await within(environment.clock, lookDeadlineMs, reading(), () => new Error('no answer in time'))
  } catch (error) {
    return { kind: 'unknown', says: `HEAD in ${storage.checkpoints} could not be read: ${(error as Error).message}` }
  }
  if (head === undefined)
    return { kind: 'goes on', says: `There is no HEAD in ${storage.checkpoints}: it has not begun.` }
  const { start, end } = head
  if (start < job.start)
    return { kind: 'goes on', says: `By HEAD start ${job.start} has not begun; start ${start} ${endWords(end)}.` }
  if (isOver(head)) return { kind: 'over', head, store: storage.checkpoints }
  const more =
    end.kind === 'none'
      ? ''
      : ', and not all of its commits are confirmed: its next coordinator sees to that, or millrace admin commit'
  return { kind: 'goes on', says: `By HEAD start ${start} ${endWords(end)}${more}.` }
}
