// Properties are checked on the same cases each time: what is red is red again. Others are looked for by hand: MILLRACE_SEED=1 and so on.

import { configureGlobal } from 'fast-check'

configureGlobal({ seed: Number(process.env['MILLRACE_SEED'] ?? 7) })
