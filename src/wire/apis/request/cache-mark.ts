import { isObject } from "../../core/json.ts";

/** Anthropic's default for `cache_control`, and OpenAI's for `prompt_cache_breakpoint`, in minutes. */
const defaultMinutes = { anthropic: 5, openAi: 30 };

/**
 * Returns the time for which an object of a request, such as a part or a tool, is marked for the prompt cache; undefined without a mark.
 * Marks have no effect on the answer, so one that cannot be read counts as one with the default time.
 * Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching and
 * https://openrouter.ai/docs/guides/best-practices/prompt-caching (`cache_control`), OpenAI's SDK 6 (`prompt_cache_breakpoint`).
 */
export function cacheMinutesOf(marked: object): number | undefined {
  const { cache_control: control, prompt_cache_breakpoint: breakpoint } = marked as {
    readonly cache_control?: unknown;
    readonly prompt_cache_breakpoint?: unknown;
  };
  if (isObject(control)) return minutesIn(control["ttl"]) ?? defaultMinutes.anthropic;
  return isObject(breakpoint) ? (minutesIn(breakpoint["ttl"]) ?? defaultMinutes.openAi) : undefined;
}

/** Returns a neutral part with the mark of the object that it was read from; `part` itself if that has none. */
export function withMark<Part extends object>(part: Part, marked: object): Part {
  const cacheMinutes = cacheMinutesOf(marked);
  return cacheMinutes === undefined ? part : { ...part, cacheMinutes };
}

function minutesIn(ttl: unknown): number | undefined {
  const [, count, unit] = (typeof ttl === "string" && /^(\d{1,4})(m|h)$/.exec(ttl)) || [];
  return count === undefined ? undefined : Number(count) * (unit === "h" ? 60 : 1);
}
