// Freezing: how the test kit and local mode find a job that changes a record or a state value in place.

/**
 * Freezes plain objects and arrays to the bottom and returns the same value. What is frozen already is taken as frozen to
 * the bottom, so passing one record through many operators costs one look. Typed arrays cannot be frozen (the language
 * refuses); of a Map or Set only the members are.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) freezeObject(value)
  return value
}

function freezeObject(value: object): void {
  if (ArrayBuffer.isView(value)) return
  // Before the members: an object that contains itself ends here.
  Object.freeze(value)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) freezeMember(value[index])
  } else if (value instanceof Map) {
    for (const [key, member] of value) {
      freezeMember(key)
      freezeMember(member)
    }
  } else if (value instanceof Set) {
    for (const member of value) freezeMember(member)
  } else {
    for (const name in value) freezeMember((value as Record<string, unknown>)[name])
  }
}

function freezeMember(member: unknown): void {
  if (typeof member === 'object' && member !== null && !Object.isFrozen(member)) freezeObject(member)
}
