// What the tests of the registry of workers share.

import { incarnation, jobId } from '../base/ids.ts'
import { WORKER_WIRE_VERSION } from '../control/worker-contract.ts'
import type { Hello } from '../control/worker-contract.ts'

export const options = {
  job: jobId('uid-1'),
  runtimeVersion: '1.0.0',
  token: 'secret-token',
  roomDeadlineMs: 300_000,
  startDeadlineMs: 60_000,
}
export const one = incarnation(1)
export const start = { incarnation: one, parallelism: undefined }

export function hello(overrides: Partial<Hello> = {}): Hello {
  return {
    type: 'hello',
    wireVersion: WORKER_WIRE_VERSION,
    runtimeVersion: '1.0.0',
    build: '',
    job: options.job,
    worker: 'w-0',
    instance: `i-${overrides.worker ?? 'w-0'}`,
    token: options.token,
    slots: 2,
    promised: incarnation(0),
    running: [],
    ...overrides,
  }
}
