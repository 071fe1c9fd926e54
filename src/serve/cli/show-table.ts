/** Prints rows as columns; the first row has their names. */
export function showTable(rows: readonly (readonly string[])[]): void {
  const widths =
    rows[0]?.map((_, column) => rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0)) ?? [];
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
