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

/** A client that is told to wait longer would never ask again. In seconds. */
const longestRetry = 24 * 60 * 60;

/**
 * Seconds until a retry makes sense, from `retry-after-ms`, or `retry-after` as seconds or as a date; at most a day. `undefined` if the
 * upstream does not say.
 */
export function retryAfterSeconds(headers: ReceivedHeaders, now: number): number | undefined {
  const seconds = receivedSeconds(headers, now);
  return seconds === undefined ? undefined : Math.min(longestRetry, Math.max(0, seconds));
}

function receivedSeconds(headers: ReceivedHeaders, now: number): number | undefined {
  const ms = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] !== undefined && ms >= 0) return ms / 1000;
  const value = headers["retry-after"];
  if (typeof value !== "string") return undefined;
  const seconds = Number(value);
  if (!Number.isNaN(seconds)) return seconds;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : (date - now) / 1000;
}
