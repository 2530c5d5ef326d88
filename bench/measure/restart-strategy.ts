/** Each failure costs what a first one costs by default; by that strategy the delay grows from failure to failure. A kill may be several. */
export const eachAsTheFirst = { type: 'fixed-delay', attempts: 1_000, delayMs: 100 } as const
