import { expectTypeOf, it } from 'vitest'
import type { z } from 'zod'
import type { savepointStatus, streamJobStatus } from '../../crds/status.ts'
import type { StreamJobStatus } from '../contract.ts'
import type { SavepointFact } from '../savepoint-contract.ts'
import type { OperatorConfig } from './operator-config.ts'
import type { SpecDefaults } from '../validate.ts'

/** What is written and what the API server keeps are the same; only that the one is not changed in place. */
type Writable<T> = T extends readonly (infer Entry)[]
  ? Writable<Entry>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Writable<T[Name]> }
    : T

it('the status that the operator writes is the status that the API server keeps, field by field', () => {
  expectTypeOf<Writable<StreamJobStatus>>().toEqualTypeOf<z.output<typeof streamJobStatus>>()
  expectTypeOf<Writable<NonNullable<SavepointFact['status']>>>().toEqualTypeOf<z.output<typeof savepointStatus>>()
})

it("the chart's defaults are those that validation lays beneath a spec", () => {
  expectTypeOf<OperatorConfig['defaults']>().toExtend<SpecDefaults>()
})
