import { describe, expect, it } from 'vitest'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { crc32, gzip, gzipSync } from 'node:zlib'
import { installGuard } from './guard.ts'

/** What each of `attempts` threw with the guard on; the guard is off again before anything is expected. */
function refusalsOf(attempts: Readonly<Record<string, () => unknown>>): Record<string, string> {
  const thrown: Record<string, string> = {}
  const remove = installGuard()
  try {
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        attempt()
        thrown[name] = 'nothing'
      } catch (error) {
        thrown[name] = String(error)
      }
    }
  } finally {
    remove()
  }
  return thrown
}

describe('guard', () => {
  it('refuses real clocks, randomness, timers, files, sockets, threads and weak references, also where they were imported before', () => {
    const refusals = refusalsOf({
      'Date.now': () => Date.now(),
      'new Date()': () => new Date(),
      'Date()': () => Date(),
      'performance.now': () => performance.now(),
      hrtime: () => process.hrtime(),
      'hrtime.bigint': () => process.hrtime.bigint(),
      'Math.random': () => Math.random(),
      'crypto.randomUUID': () => crypto.randomUUID(),
      getRandomValues: () => crypto.getRandomValues(new Uint8Array(1)),
      'imported randomUUID': () => randomUUID(),
      'imported randomBytes': () => randomBytes(1),
      setTimeout: () => setTimeout(() => undefined, 0),
      setImmediate: () => setImmediate(() => undefined),
      sleep: () => sleep(1),
      readFileSync: () => readFileSync('package.json'),
      readFile: () => readFile('package.json'),
      connect: () => connect(1),
      Worker: () => new Worker('nothing.js'),
      gzip: () => gzip('text', () => undefined),
      WeakRef: () => new WeakRef({}),
      MessageChannel: () => new MessageChannel(),
      fetch: () => fetch('nowhere'),
    })
    for (const [name, refusal] of Object.entries(refusals))
      expect(`${name}: ${refusal}`).toMatch(/reaches around the simulation; use /)
  })

  it('leaves pure functions alone', () => {
    const refusals = refusalsOf({
      hash: () => createHash('sha256').update('text').digest('hex'),
      crc32: () => crc32('text'),
      gzipSync: () => gzipSync('text'),
      'a date of a given time': () => new Date(0).toISOString(),
      'Date.UTC': () => Date.UTC(2026, 0),
      'Date.parse': () => Date.parse('2026-01-01'),
      'instance of Date': () => {
        if (!(new Date(0) instanceof Date)) throw new Error('no instance')
      },
      structuredClone: () => structuredClone({ when: new Date(0) }),
      promise: () => Promise.resolve(),
    })
    expect(new Set(Object.values(refusals))).toEqual(new Set(['nothing']))
  })

  it('is gone when it is taken off, and has told of each refusal', () => {
    const told: string[] = []
    const remove = installGuard((refusal) => told.push(refusal))
    try {
      Date.now()
    } catch {
      // Code under test may catch what it likes; the refusal is known all the same.
    } finally {
      remove()
    }
    expect(told).toEqual(['Date.now reaches around the simulation; use environment.clock.'])
    expect(Date.now()).toBeGreaterThan(0)
    expect(randomBytes(1).length).toBe(1)
    expect(typeof setTimeout(() => undefined, 0)).toBe('object')
  })
})
