// Where the runtime's own modules and those of zod lie, without asking the file system about each: a process and each of its threads
// load about 290 of them before the first record. Node looks for every file, follows its links and searches for the package.json that
// says what kind of module it is; that was a quarter of the processor time of loading them (130 to 97 ms for a slot's thread).

import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url).href
const zod = new URL('.', import.meta.resolve('zod')).href

export interface OwnModule {
  readonly url: string
  readonly format: 'module' | 'module-typescript'
}

/** undefined: another package's, or one that is not named by its file. */
export function ownModule(specifier: string, parent: string | undefined): OwnModule | undefined {
  if (!specifier.startsWith('.') || parent === undefined) return undefined
  if (specifier.endsWith('.ts')) {
    if (parent.startsWith(root)) return { url: new URL(specifier, parent).href, format: 'module-typescript' }
  } else if (specifier.endsWith('.js') && parent.endsWith('.js')) {
    if (parent.startsWith(root) || parent.startsWith(zod))
      return { url: new URL(specifier, parent).href, format: 'module' }
  }
  return undefined
}

/** For what this thread imports from now on. */
export function resolveOwnModules(): void {
  registerHooks({
    resolve: (specifier, context, next) => {
      const own = ownModule(specifier, context.parentURL)
      return own === undefined ? next(specifier, context) : { ...own, shortCircuit: true }
    },
  })
}
