/** Milliseconds as they are shown. */
export function rounded(ms = 0): number {
  return Math.round(ms * 100) / 100;
}
