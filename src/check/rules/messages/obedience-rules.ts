import { shown } from "../place.ts";
import { isObject } from "../../../core/json.ts";
import { parsedJson } from "../view.ts";
import { messageDemands } from "./message-demands.ts";
import { callsIn, isWhole, type MessageRule, type MessageView, textOf } from "./message-view.ts";

const misunderstood = "requests are misunderstood";
const choice = "Anthropic's documentation: tool_choice";

const demands = ({ exchange }: MessageView) => messageDemands(exchange.request.body);

/** Whether a message does what the request asked. */
export const obedienceRules: readonly MessageRule[] = [
  {
    id: "messages/stop-text",
    severity: "error",
    concern: misunderstood,
    says: "The text does not contain a stop sequence of the request.",
    source: "Anthropic's documentation: stop_sequences; recordings: no counterexample",
    breaks: ["agents that parse text up to a mark"],
    judges: "message",
    shown: (view) => demands(view).stops.length > 0,
    *judge(view) {
      const stop = demands(view).stops.find((one) => textOf(view).includes(one));
      if (stop !== undefined) yield view.at("stop_reason", `the stop sequence ${shown(stop)} in the text`);
    },
  },
  {
    id: "messages/max-tokens",
    severity: "error",
    concern: misunderstood,
    says: "A message has at most max_tokens tokens.",
    source: "Anthropic's documentation: max_tokens; recordings 894 of 894",
    breaks: ["callers that budget"],
    judges: "message",
    shown: (view) => view.isComplete && demands(view).limit !== undefined && isObject(view.message.usage),
    *judge(view) {
      const { usage } = view.message;
      const used = isObject(usage) ? usage.output_tokens : 0;
      const { limit = Infinity } = demands(view);
      if (typeof used === "number" && used > limit) yield view.at("output_tokens", `${used} tokens, ${limit} allowed`);
    },
  },
  {
    id: "messages/required",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice any, or a named tool, there is a call.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents and structured extraction"],
    judges: "message",
    shown: (view) => isWhole(view) && demands(view).forced,
    *judge(view) {
      if (callsIn(view).length === 0) yield view.at("stop_reason", "no call");
    },
  },
  {
    id: "messages/named",
    severity: "error",
    concern: misunderstood,
    says: "With a named tool, only that tool is called.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents and structured extraction"],
    judges: "message",
    shown: (view) => demands(view).named !== undefined,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (value.name !== demands(view).named) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/no-tools",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice none, or without tools, there is no call.",
    source: `${choice}; recordings: no counterexample`,
    breaks: ["agents that want an answer in words"],
    judges: "message",
    shown: (view) => demands(view).silent,
    *judge(view) {
      for (const { value, at } of callsIn(view)) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/parallel",
    severity: "error",
    concern: misunderstood,
    says: "With disable_parallel_tool_use there is at most one call.",
    source: `${choice}, disable_parallel_tool_use; recordings: no counterexample; ogx #5975`,
    breaks: ["agents whose tools must run one after the other"],
    judges: "message",
    shown: (view) => demands(view).single,
    *judge(view) {
      const [, second] = callsIn(view);
      if (second) yield second.at("name", `${callsIn(view).length} calls`);
    },
  },
  {
    id: "messages/json",
    severity: "error",
    concern: misunderstood,
    says: "With output_config.format the text is one JSON value.",
    source: "Anthropic's documentation: Structured outputs; recordings 32 of 32 bodies",
    breaks: ["structured extraction (JSON.parse throws)"],
    judges: "message",
    shown: (view) => isWhole(view) && demands(view).json && callsIn(view).length === 0,
    *judge(view) {
      const text = textOf(view);
      if (parsedJson(text) === undefined)
        yield view.at("stop_reason", `text that is not JSON: ${shown(text.slice(0, 40))}`);
    },
  },
  {
    id: "messages/no-thinking",
    severity: "warning",
    concern: misunderstood,
    says: "With thinking disabled there is no thinking block.",
    source: "Anthropic's documentation: Extended thinking; recordings: no counterexample",
    breaks: ["callers that want none (they wait and pay for it)"],
    judges: "message",
    shown: (view) => demands(view).thoughtless,
    *judge({ blocks }) {
      for (const { value, at } of blocks) if (value.type === "thinking") yield at("thinking", "a thought");
    },
  },
];
