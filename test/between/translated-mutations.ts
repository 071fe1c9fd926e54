import type { Api } from "../../src/judge/between/facts.ts";
import { type Defect, events, everywhere, type Json, whole, without } from "./mutations.ts";

/** A defect of a gateway that translates. It changes what the vendor's side has, or what the client's side has. */
export interface TranslatedDefect extends Omit<Defect, "api"> {
  readonly client: Api;
  readonly vendor: Api;
  readonly side: "client" | "vendor";
}

type Messages = readonly Json[];

function messagesOf(change: (message: Json) => Json | undefined) {
  return (body: Json): Json => ({
    ...body,
    messages: (body["messages"] as Messages).flatMap((message) => change(message) ?? []),
  });
}

const roleOf = (role: string, change: (message: Json) => Json | undefined) =>
  messagesOf((message) => (message["role"] === role ? change(message) : message));

function inOptions(change: (options: Json) => Json) {
  return (body: Json): Json => ({ ...body, options: change(body["options"] as Json) });
}

const endedAsUsual =
  'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

function defectsOf(
  client: Api,
  vendor: Api,
  side: TranslatedDefect["side"],
  list: readonly Omit<TranslatedDefect, "client" | "vendor" | "side">[],
): TranslatedDefect[] {
  return list.map((defect) => ({ client, vendor, side, ...defect }));
}

export const translatedDefects: readonly TranslatedDefect[] = [
  ...defectsOf("messages", "chat", "vendor", [
    { name: "drops the system text", request: roleOf("system", () => undefined), finds: "request changed system" },
    {
      name: "makes the system text the user's",
      request: roleOf("system", (message) => ({ ...message, role: "user" })),
      finds: "request changed system",
    },
    { name: "loses stop sequences", request: without("stop"), finds: "request lost limits.stop" },
    {
      name: "empties results of tools",
      request: roleOf("tool", (message) => ({ ...message, content: "" })),
      finds: "request changed messages[].content[].content[].text",
    },
    {
      name: "loses arguments of earlier calls",
      request: everywhere((value) => ("arguments" in value ? { ...value, arguments: "{}" } : value)),
      finds: "request lost messages[].content[].arguments",
    },
    {
      name: "loses images",
      request: everywhere((value) => (value["type"] === "image_url" ? { type: "text", text: "[image]" } : value)),
      finds: "request",
      only: ["image"],
    },
    {
      name: "strips keywords of schemas",
      request: everywhere(without("pattern", "minLength")),
      finds: "request lost tools[].parameters.properties.city.minLength",
    },
    {
      name: "lowers the limit of the answer",
      // OpenAI refuses both members in one request.
      request: ({ max_tokens: _lost, ...body }) => ({ ...body, max_completion_tokens: 100 }),
      finds: "request changed limits.maxTokens",
    },
    {
      name: "puts the date into the prompt",
      request: roleOf("system", (message) => ({
        ...message,
        content: `${Math.random()} ${String(message["content"])}`,
      })),
      finds: "request cache-lost prompt",
      only: ["session"],
    },
    {
      name: "loses cached tokens in usage",
      answer: whole(everywhere(without("cached_tokens"))),
      finds: "answer lost usage.cached",
    },
    {
      name: "loses the second of two calls",
      answer: whole(
        everywhere((value) =>
          Array.isArray(value["tool_calls"]) ? { ...value, tool_calls: value["tool_calls"].slice(0, 1) } : value,
        ),
      ),
      finds: "answer lost calls",
    },
  ]),
  ...defectsOf("messages", "chat", "client", [
    { name: "buffers streams", answer: (text) => text, finds: "transport delayed stream" },
    {
      name: "answers errors with 200",
      status: () => 200,
      finds: "answer error-changed status 429 status",
    },
    { name: "loses retry-after", answerHeaders: without("retry-after"), finds: "answer header-lost retry-after" },
    { name: "reads on when the client has left", readsOn: true, finds: "transport not-cancelled" },
    {
      name: "loses the words of an error",
      answer: (text) => text.replace("The vendor refuses with status 429.", "Error"),
      finds: "answer error-changed status 429 message",
    },
  ]),
  ...defectsOf("chat", "messages", "vendor", [
    {
      name: "loses signatures of thinking in streams and whole answers",
      answer: (text, isStream) =>
        isStream
          ? events((data) => ((data["delta"] as Json | undefined)?.["type"] === "signature_delta" ? undefined : data))(
              text,
              true,
            )
          : whole(everywhere(without("signature")))(text, false),
      finds: "request lost returned state",
    },
    {
      name: "drops thinking blocks",
      request: messagesOf((message) => ({
        ...message,
        content: Array.isArray(message["content"])
          ? (message["content"] as Json[]).filter(({ type }) => type !== "thinking")
          : message["content"],
      })),
      finds: "request lost returned state",
    },
    { name: "loses the choice of a tool", request: without("tool_choice"), finds: "request lost toolChoice" },
    { name: "loses the temperature", request: without("temperature"), finds: "request lost sampling.temperature" },
    { name: "drops the system text", request: without("system"), finds: "request changed system" },
    {
      name: "loses descriptions of tools",
      request: everywhere((value) => ("input_schema" in value ? without("description")(value) : value)),
      finds: "request lost tools[].description",
    },
    {
      name: "changes the reason of the end",
      answer: (text) => text.replaceAll('"max_tokens"', '"end_turn"'),
      finds: "answer changed finish",
    },
  ]),
  ...defectsOf("chat", "messages", "client", [
    {
      name: "ends a broken stream as usual",
      answer: (text) => text.replace(/data: \{"error".*/s, endedAsUsual),
      finds: "transport cut-without-error stream",
    },
  ]),
  ...defectsOf("responses", "messages", "client", [
    {
      name: "gives each client the answer of another",
      answer: (text) =>
        text.replaceAll("fact:text-whole.", "fact:text-stream.").replaceAll("fact:base.", "fact:user-17."),
      finds: "answer mixed-up",
    },
  ]),
  ...defectsOf("responses", "messages", "vendor", [
    { name: "loses the effort", request: without("output_config", "thinking"), finds: "request lost reasoning" },
    {
      name: "loses the schema of the answer",
      request: everywhere(without("format")),
      finds: "request lost output",
      only: ["schema"],
    },
  ]),
  ...defectsOf("messages", "gemini", "vendor", [
    {
      name: "loses signatures of calls",
      request: everywhere(without("thoughtSignature")),
      finds: "request lost returned state",
    },
    { name: "drops the system text", request: without("systemInstruction"), finds: "request changed system" },
    { name: "loses the choice of a tool", request: without("toolConfig"), finds: "request lost toolChoice" },
  ]),
  ...defectsOf("gemini", "chat", "vendor", [
    { name: "loses the seed", request: without("seed"), finds: "request lost sampling.seed", only: ["seed"] },
    { name: "loses the schema of the answer", request: without("response_format"), finds: "request lost output" },
  ]),
  ...defectsOf("chat", "ollama", "vendor", [
    {
      name: "loses the temperature",
      request: inOptions(without("temperature")),
      finds: "request lost sampling.temperature",
    },
    { name: "loses images", request: everywhere(without("images")), finds: "request", only: ["image"] },
    {
      name: "changes the reason of the end",
      answer: (text) => text.replaceAll('"done_reason":"length"', '"done_reason":"stop"'),
      finds: "answer changed finish",
    },
  ]),
  ...defectsOf("messages", "responses", "vendor", [
    {
      name: "drops results of tools",
      request: (body) => ({
        ...body,
        input: (body["input"] as Json[]).filter(({ type }) => type !== "function_call_output"),
      }),
      // The vendor refuses a call without its result.
      finds: "request refused input",
    },
    {
      name: "swaps results of parallel calls",
      request: (body) => ({
        ...body,
        input: (body["input"] as Json[]).map((item) =>
          item["output"] === "first" || item["output"] === "second"
            ? { ...item, output: item["output"] === "first" ? "second" : "first" }
            : item,
        ),
      }),
      finds: "request changed messages[].content[].content",
    },
  ]),
];
