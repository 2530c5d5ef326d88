import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { jobArguments } from './job-arguments.ts'

const schema = z.object({
  limit: z.int().optional(),
  airport: z.string().optional(),
  days: z.array(z.string()).optional(),
})

describe("a job's arguments on the command line", () => {
  it('are texts where the schema takes a text, else JSON', () => {
    const named = [
      ['limit', '5'],
      ['airport', '5'],
      ['days', '["a","b"]'],
    ] as const
    expect(jobArguments(schema, {}, named)).toEqual({ limit: 5, airport: '5', days: ['a', 'b'] })
  })

  it('win over those of --args, and the last of one name over the others', () => {
    const named = [
      ['limit', '6'],
      ['limit', '7'],
    ] as const
    expect(jobArguments(schema, { limit: 1, airport: 'ORD' }, named)).toEqual({ limit: 7, airport: 'ORD' })
  })

  it('are refused when the schema does not have their name', () => {
    expect(() => jobArguments(schema, {}, [['limt', '5']])).toThrow(
      /MR-L11.*no argument limt; it has limit, airport, days/,
    )
    expect(() => jobArguments(schema, { limt: 5 }, [])).toThrow('MR-L11')
    expect(jobArguments(schema.loose(), {}, [['limt', '5']])).toEqual({ limt: '5' })
  })

  it('stay as given where they do not fit, for the job to say so', () => {
    expect(jobArguments(schema, {}, [['limit', 'many']])).toEqual({ limit: 'many' })
    expect(jobArguments(schema, { limit: '5' }, [])).toEqual({ limit: '5' })
    expect(jobArguments(undefined, {}, [['limit', '5']])).toEqual({ limit: '5' })
  })
})
