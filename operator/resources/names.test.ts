import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { accessName, accountName, codeName, configName, coordinatorName, shortPodName, workerName } from './names.ts'
import { START_IN_RENDERING } from '../contract.ts'

/** Of a Service (RFC 1035): no digit at the beginning. */
const label = /^[a-z]([a-z0-9-]*[a-z0-9])?$/
const letters = fc.constantFrom(...Array.from('abcdefghijklmnopqrstuvwxyz0123456789'))
const part = fc
  .tuple(letters, fc.string({ unit: fc.oneof(letters, fc.constant('-')), maxLength: 100 }), letters)
  .map((parts) => parts.join(''))
/** As the API server takes them. */
const jobName = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) =>
  parts
    .join('.')
    .slice(0, 253)
    .replace(/[-.]+$/, ''),
)
const anyJob = fc.record({ name: jobName, uid: fc.uuid() })

const all = (job: { readonly name: string; readonly uid: string }): string[] => [
  coordinatorName(job),
  workerName(job),
  accessName(job),
  accountName(job),
  codeName(job, 'c0de'.repeat(16)),
  configName(job, '1'),
  configName(job, '9999999'),
  ...(
    [
      'admin-close',
      'admin-restore-point',
      'admin-commit',
      'admin-dispose',
      'admin-dispose-checkpoints',
      'preflight',
    ] as const
  ).map((purpose) => shortPodName(job, purpose, 'close-3-1')),
]

describe('names of children', () => {
  it('are names of services with at most 52 characters, whatever the job is called, and each its own', () => {
    fc.assert(
      fc.property(anyJob, (job) => {
        const names = all(job)
        for (const name of names) {
          expect(name.length).toBeLessThanOrEqual(52)
          expect(name).toMatch(label)
        }
        expect(new Set(names).size).toBe(names.length)
        expect(all({ ...job })).toEqual(names)
      }),
    )
  })

  it('are others for a namesake', () => {
    fc.assert(
      fc.property(jobName, fc.uuid(), fc.uuid(), (name, uid, other) => {
        fc.pre(uid !== other)
        const others = new Set(all({ name, uid: other }))
        expect(all({ name, uid }).filter((child) => others.has(child))).toEqual([])
      }),
    )
  })

  it('of a config are cut in a rendering as they are with a start', () => {
    fc.assert(
      fc.property(anyJob, fc.integer({ min: 1, max: 9_999_999 }), (job, start) => {
        const inRendering = configName(job, START_IN_RENDERING)
        expect(inRendering.replaceAll(START_IN_RENDERING, String(start))).toBe(configName(job, String(start)))
      }),
    )
  })

  it('of short pods are one for each request', () => {
    const job = { name: 'a', uid: 'u' }
    expect(shortPodName(job, 'preflight', 'one')).toBe(shortPodName(job, 'preflight', 'one'))
    expect(shortPodName(job, 'preflight', 'one')).not.toBe(shortPodName(job, 'preflight', 'two'))
    expect(shortPodName(job, 'admin-close', 'one')).not.toBe(shortPodName(job, 'admin-commit', 'one'))
  })
})
