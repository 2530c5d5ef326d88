// Work on many things at a time, on so many and no more.

export interface FurtherBounds<T> {
  /** Of those under way together, such as their bytes in memory. One that weighs more has its turn alone. */
  readonly weighing?: { readonly max: number; readonly weightOf: (thing: T) => number }
  /** Ends it with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Begins with them in their order. Rejects with the first error: nothing more begins then, and what had begun goes on to its end. */
export async function forEachBounded<T>(
  things: Iterable<T>,
  atOnce: number,
  act: (thing: T) => Promise<void>,
  { weighing = { max: 0, weightOf: () => 0 }, signal }: FurtherBounds<T> = {},
): Promise<void> {
  const state = { count: 0, weight: 0, failed: undefined as { readonly error: unknown } | undefined }
  let changed = Promise.withResolvers<void>()
  const fail = (error: unknown): void => {
    state.failed ??= { error }
    changed.resolve()
  }
  const work = async (thing: T, weight: number): Promise<void> => {
    try {
      await act(thing)
    } catch (error) {
      fail(error)
    }
    state.count--
    state.weight -= weight
    changed.resolve()
  }
  const until = async (isSo: () => boolean): Promise<void> => {
    while (state.failed === undefined && !isSo()) {
      changed = Promise.withResolvers()
      await changed.promise
    }
    if (state.failed !== undefined) throw state.failed.error
  }
  const stop = (): void => fail(signal!.reason)
  signal?.addEventListener('abort', stop)
  if (signal?.aborted === true) stop()
  try {
    for (const thing of things) {
      const weight = weighing.weightOf(thing)
      await until(() => state.count === 0 || (state.count < atOnce && state.weight + weight <= weighing.max))
      state.count++
      state.weight += weight
      // It never rejects.
      void work(thing, weight)
    }
    await until(() => state.count === 0)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
