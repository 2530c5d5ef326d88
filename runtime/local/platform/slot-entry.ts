// Where a slot's thread begins: how it is to load all the rest has to be said before the rest is imported.

import { resolveOwnModules } from './own-modules.ts'

resolveOwnModules()
await import('./slot-main.ts')
