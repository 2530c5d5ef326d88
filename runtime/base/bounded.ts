// Work on many things at a time, on so many and no more.

/** Begins with them in their order. Rejects with the first error; what had begun by then goes on to its end, and nothing more begins. */
export async function forEachBounded<T>(
  things: Iterable<T>,
  atOnce: number,
  act: (thing: T) => Promise<void>,
): Promise<void> {
  // One iterator for all: each takes what nobody has taken.
  const waiting = things[Symbol.iterator]()
  let hasFailed = false
  const workOn = async (): Promise<void> => {
    try {
      for (let next = waiting.next(); next.done !== true && !hasFailed; next = waiting.next()) await act(next.value)
    } catch (error) {
      hasFailed = true
      throw error
    }
  }
  await Promise.all(Array.from({ length: atOnce }, workOn))
}
