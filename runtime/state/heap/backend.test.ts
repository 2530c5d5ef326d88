import { describe, it } from 'vitest'
import { keyedStateConformance } from '../conformance.ts'
import { createHeapBackend } from './backend.ts'

describe('the heap backend', () => {
  for (const { claim, run } of keyedStateConformance(createHeapBackend)) it(claim, run)
})

describe('the heap backend with frozen values', () => {
  for (const { claim, run } of keyedStateConformance((options) => createHeapBackend({ ...options, freeze: true }))) it(claim, run)
})
