// Lines of columns.

/** The first row is the heads; numbers stand to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const [heads = []] = rows
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const isNumber = heads.map((_, column) => rows.slice(1).every((row) => /^[\d,.:%-]*( (ms|s|%))?$/.test(row[column]!)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => (isNumber[column]! ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
