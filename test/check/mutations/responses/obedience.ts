import type { IllegalChange } from "../mutation.ts";
import { itemsOf, onItem, onPart, onResponse, type ResponseDraft } from "./on-response.ts";
import type { Json } from "./stream-draft.ts";

const isWhole = ({ response }: ResponseDraft) => response.status === "completed";
const call = /^(function|custom_tool)_call$/;

function asks(draft: ResponseDraft, members: Json): void {
  draft.request = { ...draft.request, ...members };
}

function changesEcho(name: string, value: unknown, fits: (draft: ResponseDraft) => boolean): IllegalChange {
  return onResponse("responses/echo", `another ${name}`, (draft) => {
    draft.response[name] = value;
    return fits(draft);
  });
}

/** Whether a response does what its request asked. */
export const obedienceMutations: readonly IllegalChange[] = [
  onResponse("responses/required", "no call", (draft) => {
    const { tool_choice: choice } = draft.request ?? {};
    const forced = choice === "required" || (choice as Json | undefined)?.type === "function";
    draft.response.output = itemsOf(draft.response, /^(message|reasoning)$/);
    return forced && isWhole(draft);
  }),
  onItem("responses/named", "another tool", call, (item, draft) => {
    item.name = "get_weather";
    return (draft.request?.tool_choice as Json | undefined)?.type === "function";
  }),
  onItem("responses/no-tools", "tool_choice none", call, (_, draft) => asks(draft, { tool_choice: "none" })),
  onItem("responses/no-tools", "without tools", call, (_, draft) => {
    delete draft.request?.tools;
    delete draft.request?.tool_choice;
  }),
  onResponse("responses/parallel", "two calls", (draft) => {
    asks(draft, { parallel_tool_calls: false });
    return itemsOf(draft.response, call).length > 1;
  }),
  onItem("responses/known-tool", "a tool that nobody has", call, (item) => (item.name = "no_such_tool")),
  onItem("responses/known-tool", "the flat name of one in a namespace", call, (item) => {
    if (item.namespace === undefined) return false;
    item.name = `${String(item.namespace)}__${String(item.name)}`;
    delete item.namespace;
    return true;
  }),
  onItem("responses/known-tool", "one that is not allowed", call, (_, draft) =>
    asks(draft, { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "other" }] } }),
  ),
  onPart("responses/json-text", "words where JSON was asked for", "output_text", (part, draft) => {
    asks(draft, { text: { format: { type: "json_object" } } });
    part.text = "Sure! Here is your JSON:";
    return isWhole(draft);
  }),
  onResponse("responses/max-output-tokens", "more than allowed", (draft) => {
    asks(draft, { max_output_tokens: 16 });
    return draft.response.usage !== null;
  }),
  onPart("responses/logprobs", "none though asked for", "output_text", (part, draft) => {
    asks(draft, { include: ["message.output_text.logprobs"] });
    part.logprobs = [];
    return isWhole(draft) && part.text !== "";
  }),
  onPart("responses/logprobs", "though not asked for", "output_text", (part, draft) => {
    delete draft.request?.include;
    return isWhole(draft) && (part.logprobs as Json[]).length > 0;
  }),
  onPart("responses/logprobs", "a token is lost", "output_text", (part, draft) => {
    const [token] = (part.logprobs as Json[]).splice(0, 1);
    return isWhole(draft) && token !== undefined && (part.logprobs as Json[]).length > 0;
  }),
  ...["token", "logprob", "bytes", "top_logprobs"].map((name) =>
    onPart("responses/logprob-tokens", `no ${name}`, "output_text", (part) => {
      const [token] = part.logprobs as Json[];
      return token ? delete token[name] : false;
    }),
  ),
  onPart("responses/logprob-tokens", "a probability above 1", "output_text", (part) => {
    const [token] = part.logprobs as Json[];
    return token ? (token.logprob = 0.5) : false;
  }),
  onItem("responses/sealed", "not sealed", /^reasoning$/, (item, draft) => {
    item.encrypted_content = null;
    asks(draft, { include: ["reasoning.encrypted_content"] });
  }),
  onPart("responses/reasoning-in-text", "a thought in the text", "output_text", (part, draft) => {
    const [first] = itemsOf(draft.response, /^message$/);
    part.text = `<think>hm</think>${String(part.text)}`;
    return (first as Json & { content: Json[] }).content[0] === part;
  }),
  onPart("responses/call-in-text", "the model's markup in the text", "output_text", (part, draft) => {
    part.text = '<tool_call>{"name":"f"}</tool_call>';
    return isWhole(draft) && Array.isArray(draft.request?.tools) && draft.request.tool_choice !== "none";
  }),
  onPart("responses/special-token", "a special token at the end", "output_text", (part, draft) => {
    const last = itemsOf(draft.response, /^message$/).at(-1);
    part.text = `${String(part.text)}<|im_end|>`;
    return (last as Json & { content: Json[] }).content.at(-1) === part;
  }),
  changesEcho("temperature", 0.1, ({ request }) => request?.temperature !== undefined),
  changesEcho("max_output_tokens", null, ({ request }) => request?.max_output_tokens !== undefined),
  changesEcho("instructions", null, ({ request }) => request?.instructions !== undefined),
  changesEcho("tool_choice", "auto", ({ request }) => request?.tool_choice === "required"),
  changesEcho("metadata", {}, ({ request }) => request?.metadata !== undefined),
  changesEcho("tools", [], ({ request }) => request?.tools !== undefined),
  changesEcho("text", { format: { type: "text" } }, ({ request }) => request?.text !== undefined),
  changesEcho(
    "reasoning",
    { effort: "high", summary: null },
    ({ request }) => (request?.reasoning as Json | undefined)?.effort !== undefined,
  ),
  ...["store", "user", "top_p", "reasoning", "truncation", "metadata"].map((name) =>
    onResponse("responses/echo-members", `no ${name}`, ({ response }) => delete response[name]),
  ),
];
