// The names of what a StreamJob owns: `<job's name, cut>-<8 digits of the uid's hash>-<suffix>`. A namesake of a job that was deleted has
// another uid, hence other names.

import { createHash } from 'node:crypto'
import { invariant } from '../runtime/base/errors.ts'

/** A StatefulSet's pods and their labels add to the name; 63 is a label's limit. */
export const childNameMax = 52
const suffixMax = 24

export interface NamedJob {
  readonly name: string
  readonly uid: string
}

/** A Service's form (RFC 1035): small letters, digits and dashes, beginning with a letter. */
export function childName({ name, uid }: NamedJob, suffix: string): string {
  invariant(suffix.length <= suffixMax, `the suffix ${suffix} is too long for a name`)
  const tail = `${createHash('sha256').update(uid).digest('hex').slice(0, 8)}-${suffix}`
  const head = `${/^[a-z]/.test(name) ? '' : 'j'}${name}`
    .replaceAll('.', '-')
    .slice(0, childNameMax - tail.length - 1)
    .replace(/-+$/, '')
  return `${head}-${tail}`
}
