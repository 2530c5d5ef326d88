import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import { changedTextsOf } from './changed-texts.ts'

const long = 'a text longer than thirteen'
const person = z.object({ visits: z.int(), name: z.string(), city: z.string().nullable() })

function textsOf(schema: z.ZodType) {
  return changedTextsOf(typeInfoOf('value', schema).row.description)
}

describe('texts of an object changed in place', () => {
  it('stay as they were when the change left them alone', () => {
    const texts = textsOf(person)!
    const value = { visits: 1, name: long, city: null }
    texts.remember(value)
    value.visits++
    expect(texts.own(value)).toBe(true)
    expect(value).toEqual({ visits: 2, name: long, city: null })
  })

  it('are the new ones when the change brought new ones', () => {
    const texts = textsOf(person)!
    const value: z.infer<typeof person> = { visits: 1, name: long, city: null }
    texts.remember(value)
    value.name = `${long}, changed`
    value.city = `${long}, added`
    expect(texts.own(value)).toBe(true)
    expect(value).toEqual({ visits: 1, name: `${long}, changed`, city: `${long}, added` })
  })

  it('are not known when another object was changed meanwhile', () => {
    const texts = textsOf(person)!
    const [outer, inner] = [
      { visits: 1, name: long, city: null },
      { visits: 2, name: long, city: null },
    ]
    texts.remember(outer)
    texts.remember(inner)
    expect(texts.own(inner)).toBe(true)
    expect(texts.own(outer)).toBe(false)
  })

  it.each([
    ['no text', z.object({ n: z.int() })],
    ['a text inside of a container', z.object({ name: z.string(), tags: z.array(z.string()) })],
    ['fields beyond the schema', z.looseObject({ name: z.string() })],
    ['a field named like one of every object', z.object({ constructor: z.string() })],
    ['no object at all', z.string()],
  ])('are left to the general way when there is %s', (_, schema) => {
    expect(textsOf(schema)).toBeUndefined()
  })
})
