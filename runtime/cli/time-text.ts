/** A moment as commands print it. */
export function timeText(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('T', ' ').replace(/\..*/, ' UTC')
}
