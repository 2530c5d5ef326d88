// Times as status has them.

/** RFC 3339, whole milliseconds. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

export function timeMs(text: string): number {
  return Date.parse(text)
}
