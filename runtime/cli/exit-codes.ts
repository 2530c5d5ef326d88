// What a command's exit code says.

export const exitCodes = { done: 0, failed: 1, usage: 2 } as const
