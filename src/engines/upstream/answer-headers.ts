/** Headers as undici gives them: lower-case names. */
export type ReceivedHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The upstream's headers that a client should see: its rate limits. */
export function passedHeaders(headers: ReceivedHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    const passes = /^(x-|anthropic-)?ratelimit-/.test(name);
    if (passes && typeof value === "string") passed[name] = value;
  }
  return passed;
}

/** Seconds until a retry makes sense, from `retry-after-ms`, or `retry-after` as seconds or as a date; undefined: not told. */
export function retryAfterSeconds(headers: ReceivedHeaders, now: number): number | undefined {
  const ms = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] !== undefined && ms >= 0) return ms / 1000;
  const value = headers["retry-after"];
  if (typeof value !== "string") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
