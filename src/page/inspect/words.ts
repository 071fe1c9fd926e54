/** A time in words: `203 ms`, `4.1 s`, `12 min`. */
export function timeInWords(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.round(ms / 60_000);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The time of day. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

/** US dollars in words: `$0.0123`. */
export function costInWords(dollars: number): string {
  return `$${dollars.toLocaleString("en", { maximumSignificantDigits: 3, maximumFractionDigits: 6 })}`;
}
