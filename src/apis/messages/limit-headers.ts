import type { RateLevels } from "../rate-limits.ts";

/**
 * The headers by which Anthropic tells what is left of a key's rates; `now` in Unix milliseconds. Source:
 * https://platform.claude.com/docs/en/api/rate-limits, "Response headers".
 */
export function anthropicLimitHeaders(levels: RateLevels, now: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const rate of ["requests", "tokens"] as const) {
    const level = levels[rate];
    if (!level) continue;
    headers[`anthropic-ratelimit-${rate}-limit`] = String(level.limit);
    headers[`anthropic-ratelimit-${rate}-remaining`] = String(level.remaining);
    headers[`anthropic-ratelimit-${rate}-reset`] = atFullSecond(now + level.resetMs);
  }
  return headers;
}

/** RFC 3339, in UTC. */
function atFullSecond(unixMs: number): string {
  return new Date(Math.ceil(unixMs / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
