// What happens to a value on its way into state.

import { createReader, createWriter } from '../record/bytes.ts'
import type { Codec, TypeInfo } from '../record/contract.ts'
import { changedTextsOf } from './changed-texts.ts'
import type { ChangedTexts } from './changed-texts.ts'
import { deepFreeze } from './deep-freeze.ts'
import { stateError } from './errors.ts'
import { mayHoldText, ownStrings, SMALL_MEMBERS_MAX } from './own-strings.ts'

type Step = (value: unknown) => unknown

/** undefined steps are not needed: the value is stored as it is. */
export interface Keeping {
  readonly frozen: boolean
  /** No step is needed at all: values are stored as they come. */
  readonly plain: boolean
  /** For values that come from outside: strings of their own, then frozen. */
  readonly keep: Step | undefined
  /** For values changed in place: the same, but large ones keep their strings until the next snapshot. */
  readonly keepChanged: Step | undefined
  /** For small objects changed in place: instead of keepChanged, only the texts that the change brought. */
  readonly changedTexts: ChangedTexts | undefined
  /** What that snapshot does. */
  readonly renew: Step | undefined
  /** A copy that may be changed. */
  readonly copy: Step
}

export function keepingOf(type: TypeInfo<unknown>, frozen: boolean): Keeping {
  const holdsText = mayHoldText(type.row.description)
  const own: Step | undefined = holdsText ? (value) => ownStrings(value) : undefined
  const ownSmall: Step | undefined = holdsText ? (value) => ownStrings(value, SMALL_MEMBERS_MAX) : undefined
  const keep = thenFreeze(own, frozen)
  return {
    frozen,
    plain: keep === undefined,
    keep,
    keepChanged: thenFreeze(ownSmall, frozen),
    changedTexts: frozen ? undefined : changedTextsOf(type.row.description),
    renew: own && keep,
    copy: copyBy(type.row),
  }
}

function thenFreeze(own: Step | undefined, frozen: boolean): Step | undefined {
  if (!frozen) return own
  return own === undefined ? deepFreeze : (value) => deepFreeze(own(value))
}

function copyBy(codec: Codec<unknown>): Step {
  const writer = createWriter()
  return (value) => {
    writer.reset()
    codec.encode(value, writer)
    // From a copy of the bytes: decoding may give views.
    return codec.decode(createReader(writer.take()))
  }
}

/** What the function given to `mutate` returned instead of changing its value. Throws MR-T07 for a promise. */
export function replacement(answer: unknown): unknown {
  if (answer instanceof Promise)
    throw stateError('MR-T07', "mutate's function returned a promise; it must change the value before it returns.")
  return answer
}

/** A codec whose values come out frozen. */
export function freezing(codec: Codec<unknown>): Codec<unknown> {
  return {
    description: codec.description,
    encode: (value, writer) => codec.encode(value, writer),
    decode: (reader) => deepFreeze(codec.decode(reader)),
    readerOf: (stored) => {
      const answer = codec.readerOf(stored)
      return 'refused' in answer ? answer : { codec: freezing(answer.codec) }
    },
  }
}
