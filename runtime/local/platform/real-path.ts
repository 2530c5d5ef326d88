// Node loads modules by their real paths, and a ConfigMap's files are links.

import { realpathSync } from 'node:fs'

/** False also where it cannot be told. */
export function leadsTo(path: string, real: string): boolean {
  try {
    return realpathSync(path) === real
  } catch {
    return false
  }
}
