import * as z from "zod";
import { membersOf, unwrapped } from "../../../apis/members.ts";
import { stopReason, usage as usageSchema } from "../../../apis/messages/schema.ts";
import { isObject } from "../../../core/json.ts";
import { shown } from "../place.ts";
import { callsIn, type MessageRule, type MessageView } from "./message-view.ts";
import { promptTokens } from "./usage-counts.ts";

const ending = "the answer seems to end wrongly";
const breaking = "tool calls break";
const wrongCounts = "token counts are wrong";
const reasons = "Anthropic's documentation: Handling stop reasons";

const counts = membersOf(usageSchema).filter(({ schema }) => unwrapped(schema) instanceof z.ZodNumber);
const hasUsage = ({ message, isComplete }: MessageView) => isComplete && isObject(message.usage);

/** Why a message ended, and what it cost. Source: 316 recorded streams and 586 recorded bodies of 2024 to 2026; issues as named. */
export const endingRules: readonly MessageRule[] = [
  {
    id: "messages/stop-reason",
    severity: "error",
    concern: ending,
    says: "stop_reason is end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal, compaction or model_context_window_exceeded.",
    source: `${reasons}; official SDKs: the types of 0.120.0; recordings 902 of 902`,
    breaks: ["typed clients (Rust, Java, C#)", "agents (they do not know whether to go on)"],
    judges: "message",
    shown: ({ isComplete }) => isComplete,
    *judge({ message, at }) {
      if (!stopReason.safeParse(message.stop_reason).success)
        yield at("stop_reason", `stop_reason ${shown(message.stop_reason)}`);
    },
  },
  {
    id: "messages/tool-stop",
    severity: "error",
    concern: breaking,
    says: "A message with a call ends with tool_use, unless something cut it.",
    source: `${reasons}; recordings 220 of 220; LiteLLM #34692, bifrost #3638`,
    breaks: ["agents (the tool is never run)", "official SDKs' tool runners"],
    judges: "message",
    shown: (view) => view.isComplete && callsIn(view).length > 0,
    *judge({ message, at }) {
      const { stop_reason: reason } = message;
      if (reason === "end_turn" || reason === "stop_sequence") yield at("stop_reason", `${reason} beside a call`);
    },
  },
  {
    id: "messages/tool-stop-made",
    severity: "error",
    concern: breaking,
    says: "A message that ends with tool_use has a call.",
    source: `${reasons}; recordings 220 of 220`,
    breaks: ["agents (they wait for calls that never come)"],
    judges: "message",
    shown: ({ message }) => message.stop_reason === "tool_use",
    *judge(view) {
      if (callsIn(view).length === 0) yield view.at("stop_reason", "tool_use without a call");
    },
  },
  {
    id: "messages/stop-sequence",
    severity: "error",
    concern: ending,
    says: "stop_sequence is the sequence of the request that ended the message, with that stop_reason; else null.",
    source: `${reasons}; recordings 902 of 902; vLLM #45807`,
    breaks: ["clients that ask which sequence it was"],
    judges: "message",
    shown: ({ isComplete }) => isComplete,
    *judge({ message, exchange, at }) {
      const { stop_reason: reason, stop_sequence: stop = null } = message;
      const asked = exchange.request.body?.stop_sequences;
      if (reason !== "stop_sequence") {
        if (stop !== null) yield at("stop_sequence", `${shown(stop)} with ${shown(reason)}`);
      } else if (typeof stop !== "string") yield at("stop_sequence", `stop_sequence ${shown(stop)}`);
      else if (exchange.request.body && !(Array.isArray(asked) && asked.includes(stop)))
        yield at("stop_sequence", `${shown(stop)}, which was not asked for`);
    },
  },
  {
    id: "messages/usage",
    severity: "error",
    concern: wrongCounts,
    says: "A message has a usage: input_tokens and output_tokens, and where they are there the tokens of the cache, all whole numbers.",
    source: "Anthropic's documentation: Messages; recordings 902 of 902; free-claude-code #209",
    breaks: ["official SDKs", "AI SDK (schema)", "Claude Code (undefined is not an object)"],
    judges: "message",
    shown: ({ isComplete }) => isComplete,
    *judge({ message, at }) {
      const { usage } = message;
      if (!isObject(usage)) {
        yield at("usage", `usage is ${shown(usage)}`);
        return;
      }
      for (const { name, schema, since } of counts) {
        const count = usage[name];
        const isAbsent = since !== undefined && count === undefined;
        if (!isAbsent && !schema.safeParse(count).success) yield at(name, `${name} is ${shown(count)}`);
      }
    },
  },
  {
    id: "messages/usage-counted",
    severity: "warning",
    concern: wrongCounts,
    says: "The tokens of prompt and answer were counted: neither is 0 in the end.",
    source: "recordings 902 of 902; Ollama #13934, grok2api #612, AIClient2API #71",
    breaks: ["Claude Code (it does not see its context fill, and never compacts)", "callers that budget"],
    judges: "message",
    shown: hasUsage,
    *judge({ message, blocks, at }) {
      if (!isObject(message.usage)) return;
      if (promptTokens(message.usage) === 0) yield at("input_tokens", "a prompt of 0 tokens");
      if (blocks.length > 0 && message.usage.output_tokens === 0) yield at("output_tokens", "an answer of 0 tokens");
    },
  },
  {
    id: "messages/usage-thinking",
    severity: "error",
    concern: wrongCounts,
    says: "thinking_tokens are part of output_tokens.",
    source: "official SDKs: output_tokens_details; recordings 169 of 169",
    breaks: ["callers that budget (they subtract)"],
    judges: "message",
    shown: ({ message }) => isObject(message.usage) && isObject(message.usage.output_tokens_details),
    *judge({ message, at }) {
      const usage = isObject(message.usage) ? message.usage : {};
      const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
      const { thinking_tokens: thought } = details;
      if (typeof thought === "number" && typeof usage.output_tokens === "number" && thought > usage.output_tokens)
        yield at("thinking_tokens", `${thought} of ${usage.output_tokens}`);
    },
  },
];
