// Between two looks at a job that is waited for.

const lookEveryMs = 100

export function nextLook(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, lookEveryMs))
}
