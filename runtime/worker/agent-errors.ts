// Errors with which a worker's process ends.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const agentErrors = {
  'MR-D20': {
    meaning: 'The worker found no coordinator.',
    who: 'user',
    retry: true,
    remedy:
      'See that the coordinator runs and that coordinator.workersAddress leads to it from here; a fresh worker looks for it again.',
  },
  'MR-D21': {
    meaning: 'The worker had to end before its slots were moved.',
    who: 'user',
    retry: true,
    remedy:
      'Nothing is lost: the job restarts what ran there. A longer worker.graceMs (and grace period of the pod) lets it move first.',
  },
  'MR-D22': {
    meaning: 'The coordinator refuses the worker.',
    who: 'user',
    retry: false,
    remedy: 'The worker ends; mend that and start it again.',
  },
  'MR-D23': {
    meaning: "A slot's thread did not end.",
    who: 'user',
    retry: true,
    remedy:
      'Code of the job blocks it in a call that nothing interrupts, such as execFileSync, a read from a pipe, or a native addon. The worker ends, its supervisor starts it again, and what it ran is restarted.',
  },
} as const satisfies Record<string, ErrorRow>

export const agentError = errorsOf(agentErrors)
