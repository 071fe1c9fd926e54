import { isObject } from "../../../core/json.ts";
import { atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import type { Json, StreamView } from "../view.ts";
import { messageEvents, type StreamEvent } from "./stream-events.ts";
import { promptTokens } from "./usage-counts.ts";

const endpoints = ["messages"] as const;
const wrong = "token counts are wrong";
const streaming = "Anthropic's documentation: Streaming messages";

function startOf(view: StreamView): StreamEvent | undefined {
  return messageEvents(view).events.find(({ type }) => type === "message_start");
}

function usageOf({ chunk }: StreamEvent): Json | undefined {
  const { usage, message } = chunk.value;
  const found = isObject(message) ? message.usage : usage;
  return isObject(found) ? found : undefined;
}

/** How a stream counts. Source: 316 recorded streams of 2024 to 2026. */
export const growthRules: readonly StreamRule[] = [
  {
    id: "messages/start-usage",
    severity: "error",
    concern: wrong,
    says: "The message of message_start has a usage with input_tokens and output_tokens.",
    source: `${streaming}; recordings 316 of 316; free-claude-code #43, claude-code #46932`,
    breaks: ["Claude Code (undefined is not an object)", "AI SDK, pi (they read usage.input_tokens)"],
    judges: "stream",
    endpoints,
    shown: (view) => startOf(view) !== undefined,
    *judge(view) {
      const start = startOf(view);
      const usage = start && usageOf(start);
      if (!start) return;
      if (!usage) yield atMember(start.chunk, "usage", "no usage");
      for (const name of ["input_tokens", "output_tokens"])
        if (usage && typeof usage[name] !== "number")
          yield atMember(start.chunk, "usage", `${name} is ${shown(usage[name])}`);
    },
  },
  {
    id: "messages/start-input",
    severity: "warning",
    concern: wrong,
    says: "message_start tells the tokens of the prompt, not 0.",
    source: `${streaming}; recordings 316 of 316; SGLang #20678, LiteLLM #41406, CLIProxyAPI #1700`,
    breaks: ["Claude Code (it shows an empty context while it works)"],
    judges: "stream",
    endpoints,
    shown: (view) => {
      const last = messageEvents(view).endings.at(-1);
      return startOf(view) !== undefined && last !== undefined && promptTokens(usageOf(last) ?? {}) > 0;
    },
    *judge(view) {
      const start = startOf(view);
      const usage = start && usageOf(start);
      if (usage && promptTokens(usage) === 0) yield atMember(start.chunk, "input_tokens", "a prompt of 0 tokens");
    },
  },
  {
    id: "messages/end-usage",
    severity: "error",
    concern: wrong,
    says: "message_delta has a usage with output_tokens.",
    source: `${streaming}; recordings 316 of 316; pi #6567`,
    breaks: ["official SDKs' stream helpers (a TypeError: they read usage.output_tokens)", "pi"],
    judges: "stream",
    endpoints,
    shown: (view) => messageEvents(view).endings.length > 0,
    *judge(view) {
      for (const ending of messageEvents(view).endings) {
        const usage = usageOf(ending);
        if (!usage) yield atMember(ending.chunk, "delta", "no usage");
        else if (typeof usage.output_tokens !== "number")
          yield atMember(ending.chunk, "usage", `output_tokens is ${shown(usage.output_tokens)}`);
      }
    },
  },
  {
    id: "messages/usage-grows",
    severity: "warning",
    concern: wrong,
    says: "Counts are cumulative: no later output_tokens is smaller than an earlier one.",
    source: `${streaming}: "cumulative"; recordings 316 of 316`,
    breaks: ["cost meters (they take the last count for the sum)"],
    judges: "stream",
    endpoints,
    shown: (view) => messageEvents(view).endings.length > 0,
    *judge(view) {
      const start = startOf(view);
      let before = 0;
      for (const event of [...(start ? [start] : []), ...messageEvents(view).endings]) {
        const count = usageOf(event)?.output_tokens;
        if (typeof count !== "number") continue;
        if (count < before) yield atMember(event.chunk, "output_tokens", `${count} after ${before}`);
        before = Math.max(before, count);
      }
    },
  },
];
