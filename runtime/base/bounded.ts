// Work on many things at a time, on so many and no more.

/** Begins with them in their order. Rejects with the first error; what had begun by then goes on to its end, and nothing more begins. */
export async function forEachBounded<T>(
  things: Iterable<T>,
  atOnce: number,
  act: (thing: T) => Promise<void>,
): Promise<void> {
  // One iterator for all: each takes what nobody has taken.
  let waiting: Iterator<T> | undefined = things[Symbol.iterator]()
  const workOn = async (): Promise<void> => {
    for (let next = waiting?.next(); next !== undefined && next.done !== true; next = waiting?.next()) {
      try {
        await act(next.value)
      } catch (error) {
        waiting = undefined
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, workOn))
}
