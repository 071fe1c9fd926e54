const [mostShown, longestShown] = [20, 300];

/** Warnings for the log: a client may cause thousands, and quote itself in them. */
export function shownWarnings(warnings: readonly string[]): string[] {
  const shown = warnings
    .slice(0, mostShown)
    .map((text) => (text.length > longestShown ? `${text.slice(0, longestShown)}...` : text));
  return warnings.length > mostShown ? [...shown, `and ${warnings.length - mostShown} more`] : shown;
}
