import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { oneOf, seeded } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import type { Json } from "./message-draft.ts";
import { type Told, toldBy } from "./told.ts";

/** Changes one of the objects that there are. */
function onTold(
  rule: string,
  name: string,
  objects: (told: Told) => readonly Json[],
  change: (object: Json, told: Told) => unknown,
): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const told = toldBy(seed)?.told;
      const found = told ? objects(told) : [];
      if (!told || found.length === 0) return undefined;
      const before = JSON.stringify(told.write());
      change(oneOf(found, seeded(seed)), told);
      const after = told.write();
      return JSON.stringify(after) === before ? undefined : judge(after).findings;
    },
  };
}

const messages = ({ message }: Told) => [message];
const bodies = ({ isStream, message }: Told) => (isStream ? [] : [message]);
const blocks = (type: string) => (told: Told) => told.content.filter((block) => block.type === type);
const calls = (told: Told) => told.calls;
const endings = ({ ending }: Told) => (ending ? [ending] : []);
const usages = ({ usage }: Told) => (usage ? [usage] : []);
const endingWith =
  (...reasons: string[]) =>
  (told: Told) =>
    endings(told).filter(({ stop_reason: reason }) => reasons.includes(String(reason)));
/** Requests of messages that fit, so that the request is what changes. */
const asking = (fits: (told: Told) => boolean) => (told: Told) => (told.request && fits(told) ? [told.request] : []);
const isWhole = ({ ending }: Told) => ["end_turn", "tool_use"].includes(String(ending?.stop_reason));

function spoiled(rule: string, member: string, objects: (told: Told) => readonly Json[], wrong: readonly unknown[]) {
  return [
    onTold(rule, `no ${member}`, objects, (object) => delete object[member]),
    ...wrong.map((value) =>
      onTold(rule, `${member}: ${JSON.stringify(value)}`, objects, (object) => (object[member] = value)),
    ),
  ];
}

/** What a message says, streamed or not. */
export const contentMutations: readonly IllegalChange[] = [
  ...spoiled("messages/message", "id", messages, ["", null, 7]),
  ...spoiled("messages/message", "type", messages, ["chat.completion", null]),
  ...spoiled("messages/message", "role", messages, ["user", null]),
  ...spoiled("messages/message", "model", messages, ["", null]),
  ...spoiled("messages/message", "content", bodies, [null, "Hi", {}, [{ text: "Hi" }]]),
  onTold("messages/diagnostics", "no reason", messages, (message) => (message["diagnostics"] = {})),
  onTold("messages/diagnostics", "a reason without a type", messages, (message) => {
    message["diagnostics"] = { cache_miss_reason: { cache_missed_input_tokens: 7 } };
  }),
  onTold("messages/diagnostics", "a change without tokens", messages, (message) => {
    message["diagnostics"] = { cache_miss_reason: { type: "tools_changed" } };
  }),
  onTold("messages/diagnostics", "tokens that are a text", messages, (message) => {
    message["diagnostics"] = { cache_miss_reason: { type: "system_changed", cache_missed_input_tokens: "7" } };
  }),
  onTold("messages/diagnostics-known", "another reason", messages, (message) => {
    message["diagnostics"] = { cache_miss_reason: { type: "weather_changed" } };
  }),
  ...spoiled("messages/block-members", "text", blocks("text"), [null, 7]),
  ...spoiled("messages/block-members", "thinking", blocks("thinking"), [null]),
  ...spoiled("messages/block-members", "signature", blocks("thinking"), [null]),
  ...spoiled("messages/block-members", "data", blocks("redacted_thinking"), ["", null]),
  ...spoiled("messages/block-members", "input", blocks("tool_use"), ["{}", null, []]),
  onTold("messages/id-form", "OpenAI's id", messages, (message) => (message.id = "chatcmpl-1")),
  onTold("messages/id-form", "OpenAI's id of a call", calls, (call) => (call.id = "call_1")),
  onTold(
    "messages/empty-text",
    "an empty text before a call",
    (told) => (told.calls.length > 0 && !told.isStream ? [told.message] : []),
    (_, { content }) => content.unshift({ type: "text", text: "" }),
  ),
  onTold(
    "messages/empty-text",
    "its text is lost",
    (told) => (told.calls.length > 0 ? told.texts : []),
    (_, told) => {
      for (const text of told.texts) text.text = "";
    },
  ),
  ...spoiled("messages/tool-id", "id", calls, ["", null, 7]),
  onTold(
    "messages/tool-id",
    "the same id twice",
    (told) => (told.calls.length > 1 ? [told.message] : []),
    (_, told) => {
      for (const call of told.calls) call.id = "toolu_1";
    },
  ),
  onTold("messages/tool-id-letters", "another server's id", calls, (call) => (call.id = "functions.f:0")),
  ...spoiled("messages/tool-name", "name", calls, ["", null]),
  onTold("messages/known-tool", "a tool of nobody's", calls, (call) => (call.name = "no_such_tool")),
  onTold(
    "messages/reasoning-in-text",
    "<think>",
    ({ texts: [first] }) => (first ? [first] : []),
    (text) => (text.text = `<think>Hm.</think>${String(text.text)}`),
  ),
  onTold(
    "messages/call-in-text",
    "<tool_call>",
    (told) => {
      const choice = told.request?.tool_choice as Json | undefined;
      const mayCall = told.request?.tools !== undefined && choice?.type !== "none";
      return mayCall && told.ending?.stop_reason !== "max_tokens" && told.ending ? told.texts : [];
    },
    (text) => (text.text = '<tool_call>{"name":"f"}</tool_call>'),
  ),
  onTold(
    "messages/special-token",
    "<|im_end|>",
    (told) => told.texts.slice(-1),
    (text) => (text.text = `${String(text.text)}<|im_end|>`),
  ),
  ...spoiled("messages/stop-reason", "stop_reason", endings, ["stop", "length", "tool_calls", "", 1]),
  onTold(
    "messages/stop-reason",
    "null",
    (told) => (told.ending ? [told.ending] : []),
    (ending) => (ending.stop_reason = null),
  ),
  onTold(
    "messages/tool-stop",
    "end_turn next to a call",
    (told) => (told.calls.length > 0 ? endings(told) : []),
    (ending) => (ending.stop_reason = "end_turn"),
  ),
  onTold(
    "messages/tool-stop-made",
    "tool_use without a call",
    (told) => (told.calls.length === 0 ? endings(told) : []),
    (ending) => (ending.stop_reason = "tool_use"),
  ),
  onTold(
    "messages/stop-sequence",
    "end_turn after a sequence",
    endingWith("stop_sequence"),
    (ending) => (ending.stop_reason = "end_turn"),
  ),
  onTold(
    "messages/stop-sequence",
    "which one is not told",
    endingWith("stop_sequence"),
    (ending) => (ending.stop_sequence = null),
  ),
  onTold(
    "messages/stop-sequence",
    "one that was not asked for",
    endingWith("stop_sequence"),
    (ending) => (ending.stop_sequence = "</s>"),
  ),
  ...spoiled("messages/usage", "usage", bodies, [null, 27]),
  ...spoiled("messages/usage", "output_tokens", (told) => (told.isStream ? [] : usages(told)), ["7", -1, 0.5, null]),
  onTold("messages/usage", "a text for the count of an answer", usages, (usage) => (usage.output_tokens = "40")),
  onTold("messages/usage", "a text for a count", usages, (usage) => (usage.input_tokens = "9")),
  onTold("messages/usage", "a negative cache", usages, (usage) => (usage.cache_read_input_tokens = -1)),
  onTold("messages/usage-counted", "a prompt of 0 tokens", usages, (usage) => {
    for (const name of ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]) usage[name] = 0;
  }),
  onTold(
    "messages/usage-counted",
    "an answer of 0 tokens",
    (told) => (told.calls.length + told.texts.length > 0 ? usages(told) : []),
    (usage) => (usage.output_tokens = 0),
  ),
  onTold(
    "messages/usage-thinking",
    "more thought than said",
    usages,
    (usage) => (usage.output_tokens_details = { thinking_tokens: 9999 }),
  ),
  onTold(
    "messages/stop-text",
    "the sequence is left in",
    (told) => (told.request?.stop_sequences ? told.texts : []),
    (text) => (text.text = `${String(text.text)}<stop>`),
  ),
  onTold(
    "messages/max-tokens",
    "more than were allowed",
    asking((told) => told.ending !== undefined),
    (request) => (request.max_tokens = 5),
  ),
  onTold(
    "messages/required",
    "no call though one must be",
    asking((told) => told.calls.length === 0 && isWhole(told)),
    (request) => Object.assign(request, { tools: [{ name: "f" }], tool_choice: { type: "any" } }),
  ),
  onTold(
    "messages/named",
    "another tool",
    asking((told) => told.calls.length > 0),
    (request) => Object.assign(request, { tools: [{ name: "g" }], tool_choice: { type: "tool", name: "g" } }),
  ),
  onTold(
    "messages/no-tools",
    "a call though none may be",
    asking((told) => told.calls.length > 0),
    (request) => (request.tool_choice = { type: "none" }),
  ),
  onTold(
    "messages/no-tools",
    "a call without tools",
    asking((told) => told.calls.length > 0),
    (request) => delete request.tools,
  ),
  onTold(
    "messages/parallel",
    "two calls at once",
    asking((told) => told.calls.length > 1),
    (request) => (request.tool_choice = { type: "auto", disable_parallel_tool_use: true }),
  ),
  onTold(
    "messages/json",
    "a text that is no JSON",
    asking((told) => told.calls.length === 0 && isWhole(told) && told.texts.length > 0),
    (request, told) => {
      request.output_config = { format: { type: "json_schema", schema: {} } };
      for (const text of told.texts) text.text = `Here it is: ${String(text.text)}`;
    },
  ),
  onTold(
    "messages/no-thinking",
    "a thought though there may be none",
    asking((told) => told.thoughts.length > 0),
    (request) => (request.thinking = { type: "disabled" }),
  ),
];
