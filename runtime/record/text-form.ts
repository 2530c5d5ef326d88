// The forms in which text lies in bytes. Which one follows from the text alone, so equal texts have equal bytes.

import { recordError } from './errors.ts'

/** ascii: one byte a character. utf8: well-formed text. utf16, little-endian: text with lone surrogates. */
export const textForms = { ascii: 0, utf8: 1, utf16: 2 } as const

/** Buffer's own string functions; they take any Uint8Array as `this` and skip Buffer.write's checks and encoding look-up. */
interface NativeText {
  utf8Write(this: Uint8Array, text: string, offset: number, length: number): number
  ucs2Write(this: Uint8Array, text: string, offset: number, length: number): number
  latin1Slice(this: Uint8Array, from: number, to: number): string
  utf8Slice(this: Uint8Array, from: number, to: number): string
  ucs2Slice(this: Uint8Array, from: number, to: number): string
}
export type TextBuffer = Buffer & NativeText

const native = Buffer.prototype as unknown as NativeText

/** The text of bytes[from, to) in one of the forms; throws MR-R01 for an unknown form. */
export function sliceText(bytes: Uint8Array, form: number, from: number, to: number): string {
  if (form === textForms.ascii) return native.latin1Slice.call(bytes, from, to)
  if (form === textForms.utf8) return native.utf8Slice.call(bytes, from, to)
  if (form === textForms.utf16) return native.ucs2Slice.call(bytes, from, to)
  throw recordError('MR-R01', `A string at byte ${from} has the unknown form ${form}.`)
}
