// A column of strings: their lengths in UTF-16 units, then all of them as one text. One native call writes and one reads the
// whole column, which is what makes the columnar codec fast. The price: a string cut from that text keeps all of it alive,
// so state copies strings before it keeps them (detach.ts).

import type { BinaryWriter } from './bytes.ts'
import type { ByteReader } from './contract.ts'
import { recordError } from './errors.ts'
import { writeNumbers, type NumberColumn } from './number-column.ts'
import { sliceText, textForms } from './text-form.ts'

/** `joined` is the concatenation of the column's strings, `lengths` their lengths. */
export function writeTexts(writer: BinaryWriter, lengths: Float64Array, count: number, joined: string): void {
  writeNumbers(writer, lengths, count)
  const length = joined.length
  writer.reserve(5 + length * 3)
  const start = writer.position
  const { bytes, view } = writer
  let byteCount = bytes.utf8Write(joined, start + 5, length * 3)
  let form: number = byteCount === length ? textForms.ascii : textForms.utf8
  if (form === textForms.utf8 && !joined.isWellFormed()) {
    form = textForms.utf16
    byteCount = bytes.ucs2Write(joined, start + 5, length * 2)
  }
  bytes[start] = form
  view.setUint32(start + 1, byteCount, true)
  writer.position = start + 5 + byteCount
}

/** The joined text; throws MR-R01 unless the lengths are whole and add up to it. */
export function readText(reader: ByteReader, lengths: NumberColumn, count: number): string {
  const form = reader.u8()
  const byteCount = reader.u32()
  reader.raw(byteCount)
  const text = sliceText(reader.bytes, form, reader.position - byteCount, reader.position)
  let sum = 0
  for (let index = 0; index < count; index++) {
    const length = lengths[index]!
    if (!(length >= 0 && length <= text.length && Number.isInteger(length)))
      throw recordError('MR-R01', 'A string has an impossible length.')
    sum += length
  }
  if (sum !== text.length)
    throw recordError('MR-R01', `Strings of ${sum} characters in all lie in a text of ${text.length}.`)
  return text
}
