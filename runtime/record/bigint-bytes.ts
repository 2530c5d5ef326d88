// Big integers as bytes: the absolute value, big-endian, without leading zeros (0n has no bytes).

export function bigintMagnitude(value: bigint): Uint8Array {
  if (value === 0n) return new Uint8Array(0)
  const digits = (value < 0n ? -value : value).toString(16)
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex')
}

export function bigintOf(magnitude: Uint8Array): bigint {
  if (magnitude.length === 0) return 0n
  return BigInt(`0x${Buffer.from(magnitude.buffer, magnitude.byteOffset, magnitude.length).toString('hex')}`)
}
