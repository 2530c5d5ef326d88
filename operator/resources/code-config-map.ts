// A job's code, copied from the user's ConfigMap and named by its hash: pods mount only this, so edited code reaches no running job.

import { childMetadata } from './labels.ts'
import { codeName } from './names.ts'
import type { KubernetesObject, OwnerJob } from './objects.ts'

/** They are modules whatever lies above their folder. */
const packageFile = { 'package.json': '{"type":"module"}\n' }

/** What is known of it in a rendering. `hash`: of the files (revision.ts). */
export function codeConfigMap(job: OwnerJob, { hash }: { readonly hash: string }): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata({ job, component: 'code', name: codeName(job, hash) }),
    immutable: true,
  }
}

/** Binary files have no place in a job's code. */
export function codeData(files: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...packageFile, ...files }
}
