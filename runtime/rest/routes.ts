// Every path of REST.

import { changes } from './changes.ts'
import { operations } from './operations.ts'
import { questions } from './questions.ts'
import type { Route } from './route.ts'
import type { ServedJob } from './served-job.ts'

export function routesOf(served: ServedJob): readonly Route[] {
  return [...questions(served), ...changes(served), ...operations(served)]
}
