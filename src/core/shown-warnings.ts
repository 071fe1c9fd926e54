const [maxShown, maxLength] = [20, 300];

/** Limits the number and the length of warnings for the log: a client may cause thousands of warnings. */
export function shownWarnings(warnings: readonly string[]): string[] {
  const shown = warnings
    .slice(0, maxShown)
    .map((text) => (text.length > maxLength ? `${text.slice(0, maxLength)}...` : text));
  return warnings.length > maxShown ? [...shown, `and ${warnings.length - maxShown} more`] : shown;
}
