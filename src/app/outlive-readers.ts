/** From now on this process does not end because nobody reads what it says any more. */
export function outliveReaders(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}
