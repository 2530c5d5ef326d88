/** A number with its noun: `1 slot`, `2 slots`. */
export function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`
}
