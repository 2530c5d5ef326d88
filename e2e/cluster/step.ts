// What takes long says how long it took.

/** Runs `action` and prints its name and its time. A failure is printed too, and passed on. */
export async function step<Value>(name: string, action: () => Promise<Value>): Promise<Value> {
  const begunMs = performance.now()
  const seconds = (): string => `${((performance.now() - begunMs) / 1000).toFixed(1)} s`
  try {
    const value = await action()
    console.log(`[cluster] ${name}: ${seconds()}`)
    return value
  } catch (error) {
    console.log(`[cluster] ${name}: failed after ${seconds()}`)
    throw error
  }
}
