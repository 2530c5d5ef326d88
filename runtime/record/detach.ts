// Strings that stand alone. A string cut from a larger one keeps the larger one alive: the columnar codec cuts a frame's strings
// from one text per column, and msgpackr cuts those of a batch without schema from one text too. So whatever is kept longer than
// a batch (keys, state values) is detached first: 2,000 strings kept from frames of 32 KiB hold 66 MB, detached 0.1 MB.

/** V8 copies substrings shorter than this instead of pointing into their parent. */
const SLICE_LENGTH_MIN = 13
const SCRATCH_LENGTH_MAX = 1024

const scratch = Buffer.allocUnsafeSlow(SCRATCH_LENGTH_MAX * 3)

/** An equal string that shares no memory with another. */
export function detachString(text: string): string {
  const length = text.length
  if (length < SLICE_LENGTH_MIN) return text
  const bytes = length > SCRATCH_LENGTH_MAX ? Buffer.allocUnsafeSlow(length * 3) : scratch
  // One byte per character where that is enough: UTF-16 would double the memory of plain text.
  if (bytes.write(text, 'utf8') === length) return bytes.toString('latin1', 0, length)
  bytes.write(text, 'utf16le')
  return bytes.toString('utf16le', 0, length * 2)
}
