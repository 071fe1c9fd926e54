import type { Api } from "../../src/judge/between/facts.ts";
import type { Mutation } from "./pass-through.ts";

export type Json = Record<string, unknown>;

/** A defect of a gateway, and the finding by which it is known. */
export interface Defect extends Mutation {
  /** In whose form it changes requests and answers. */
  readonly api: Api;
  readonly name: string;
  /** The key of a finding, or its beginning. */
  readonly finds: string;
  /** The facts that may show it; default: the short run. */
  readonly only?: readonly string[];
}

export function without(...names: string[]): <T>(body: Record<string, T>) => Record<string, T> {
  return (body) => Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

/** Replaces each object, the inner ones first. */
export function everywhere(change: (value: Json) => unknown) {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return change(Object.fromEntries(Object.entries(value).map(([name, member]) => [name, walk(member)])));
  };
  return (body: Json): unknown => walk(body);
}

export function events(change: (data: Json) => Json | Json[] | undefined) {
  return (text: string, isStream: boolean): string => {
    if (!isStream) return text;
    return text
      .split("\n\n")
      .flatMap((frame) => {
        const at = frame.indexOf("data: ");
        if (at === -1 || frame.endsWith("[DONE]")) return [frame];
        const changed = change(JSON.parse(frame.slice(at + 6)) as Json);
        return [changed ?? []].flat().map((data) => `${frame.slice(0, at)}data: ${JSON.stringify(data)}`);
      })
      .join("\n\n");
  };
}

export function whole(change: (body: Json) => unknown) {
  return (text: string, isStream: boolean): string =>
    isStream ? text : JSON.stringify(change(JSON.parse(text) as Json));
}

type Messages = { role: string; content: unknown }[];

export const defects: readonly Defect[] = [
  // Requests to Messages.
  {
    api: "messages",
    name: "loses cache marks",
    request: everywhere(without("cache_control")),
    finds: "request lost cacheMarks",
  },
  {
    api: "messages",
    name: "moves the cache mark of the user's text to its end",
    request: (body) => ({
      ...body,
      messages: (body["messages"] as Messages).map((message) => {
        const parts = message.content;
        if (!Array.isArray(parts) || !("cache_control" in (parts[0] as Json))) return message;
        const bare = (parts as Json[]).map(without("cache_control"));
        return {
          ...message,
          content: [...bare.slice(0, -1), { ...bare.at(-1), cache_control: { type: "ephemeral", ttl: "1h" } }],
        };
      }),
    }),
    finds: "request changed cacheMarks",
  },
  {
    api: "messages",
    name: "loses the time of cache marks",
    request: everywhere((value) => ("ttl" in value ? without("ttl")(value) : value)),
    finds: "request changed cacheMarks",
  },
  {
    api: "messages",
    name: "flattens system blocks",
    request: (body) => ({
      ...body,
      system: Array.isArray(body["system"])
        ? (body["system"] as Json[]).map(({ text }) => text).join("\n")
        : body["system"],
    }),
    finds: "request lost cacheMarks",
  },
  { api: "messages", name: "drops the system text", request: without("system"), finds: "request changed system" },
  {
    api: "messages",
    name: "adds a system text",
    request: (body) => ({
      ...body,
      system: [
        { type: "text", text: "You are a gateway." },
        ...([body["system"] ?? []]
          .flat()
          .map((one) => (typeof one === "string" ? { type: "text", text: one } : one)) as Json[]),
      ],
    }),
    finds: "request changed system",
  },
  {
    api: "messages",
    name: "loses signatures",
    request: everywhere((value) => (value["type"] === "thinking" ? { ...value, signature: "" } : value)),
    finds: "request lost messages[].content[].state",
  },
  {
    api: "messages",
    name: "changes signatures",
    request: everywhere((value) => (value["type"] === "thinking" ? { ...value, signature: "eA==" } : value)),
    finds: "request changed messages[].content[].state.value",
  },
  {
    api: "messages",
    name: "drops thinking blocks",
    request: (body) => ({
      ...body,
      messages: (body["messages"] as Messages).map((message) => ({
        ...message,
        content: Array.isArray(message.content)
          ? (message.content as Json[]).filter(({ type }) => type !== "thinking")
          : message.content,
      })),
    }),
    finds: "request",
  },
  {
    api: "messages",
    name: "loses top_k",
    request: without("top_k"),
    finds: "request lost sampling.topK",
    only: ["top-k"],
  },
  {
    api: "messages",
    name: "loses stop sequences",
    request: without("stop_sequences"),
    finds: "request lost limits.stop",
  },
  {
    api: "messages",
    name: "lowers max_tokens",
    request: (body) => ({ ...body, max_tokens: 512 }),
    finds: "request changed limits.maxTokens",
    only: ["max-tokens"],
  },
  { api: "messages", name: "loses the user's id", request: without("metadata"), finds: "request lost body.metadata" },
  {
    api: "messages",
    name: "loses is_error",
    request: everywhere(without("is_error")),
    finds: "request lost messages[].content[].isError",
    only: ["failed-result"],
  },
  {
    api: "messages",
    name: "loses images of results",
    request: everywhere((value) => (value["type"] === "tool_result" ? { ...value, content: "[image]" } : value)),
    finds: "request",
    only: ["image-result"],
  },
  {
    api: "messages",
    name: "loses anthropic-beta",
    requestHeaders: without("anthropic-beta"),
    finds: "request header-lost anthropic-beta",
  },
  {
    api: "messages",
    name: "loses anthropic-version",
    requestHeaders: without("anthropic-version"),
    finds: "request refused",
  },
  { api: "messages", name: "never streams", request: without("stream"), finds: "request changed stream" },
  { api: "messages", name: "loses the effort", request: without("output_config"), finds: "request lost" },
  {
    api: "messages",
    name: "sorts tools by name",
    request: (body) => ({
      ...body,
      ...(Array.isArray(body["tools"]) && {
        tools: (body["tools"] as Json[]).toSorted((one, other) =>
          String(one["name"]).localeCompare(String(other["name"])),
        ),
      }),
    }),
    finds: "request reordered tools",
    only: ["many-tools"],
  },
  {
    api: "messages",
    name: "puts the date into the prompt",
    request: (body) => ({
      ...body,
      system: [{ type: "text", text: `It is ${Math.random()}.` }, ...((body["system"] ?? []) as Json[])],
    }),
    finds: "request cache-lost prompt",
    only: ["session"],
  },
  {
    api: "messages",
    name: "sends text as text in parts",
    request: (body) => ({
      ...body,
      messages: (body["messages"] as Messages).map((message) => ({
        ...message,
        content: typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content,
      })),
    }),
    finds: "request changed body.messages[].content",
  },
  // Requests to chat and Responses.
  {
    api: "chat",
    name: "loses the seed",
    request: without("seed"),
    finds: "request lost sampling.seed",
    only: ["seed"],
  },
  {
    api: "chat",
    name: "rounds the temperature",
    request: (body) => ({
      ...body,
      ...("temperature" in body && { temperature: Math.round(Number(body["temperature"])) }),
    }),
    finds: "request changed sampling.temperature",
  },
  {
    api: "chat",
    name: "adds a temperature",
    request: (body) => ({ temperature: 1, ...body }),
    finds: "request invented sampling",
  },
  {
    api: "chat",
    name: "loses logit_bias",
    request: without("logit_bias"),
    finds: "request lost sampling.logitBias",
    only: ["logit-bias"],
  },
  { api: "chat", name: "loses n", request: without("n"), finds: "request lost n", only: ["choices"] },
  {
    api: "chat",
    name: "loses the schema of the answer",
    request: without("response_format"),
    finds: "request lost output",
  },
  {
    api: "chat",
    name: "makes strict schemas loose",
    request: everywhere(without("strict")),
    finds: "request",
    only: ["schema", "strict-tool"],
  },
  {
    api: "chat",
    name: "strips keywords of schemas",
    request: everywhere(without("pattern", "minLength")),
    finds: "request lost tools[].parameters.properties.city.minLength",
  },
  {
    api: "chat",
    name: "inlines $ref",
    request: everywhere((value) => (typeof value["$ref"] === "string" ? { type: "object" } : value)),
    finds: "request",
  },
  {
    api: "chat",
    name: "writes arguments again",
    request: everywhere((value) =>
      typeof value["arguments"] === "string"
        ? { ...value, arguments: JSON.stringify({ days: [1, 2], city: "Zürich" }) }
        : value,
    ),
    finds: "request reordered messages[].content[].arguments",
  },
  {
    api: "chat",
    name: "swaps results",
    request: (body) => ({
      ...body,
      messages: (body["messages"] as Json[]).map((message, _, all) =>
        message["role"] === "tool" && all.filter(({ role }) => role === "tool").length === 2
          ? { ...message, content: message["content"] === "first" ? "second" : "first" }
          : message,
      ),
    }),
    finds: "request changed messages[].content[].content",
  },
  {
    api: "chat",
    name: "escapes what is not ASCII twice",
    requestText: (text) => text.replaceAll("ü", "Ã¼"),
    finds: "request",
  },
  {
    api: "chat",
    name: "trims texts",
    request: everywhere((value) =>
      typeof value["content"] === "string" ? { ...value, content: value["content"].trim() } : value,
    ),
    finds: "request changed system",
    only: ["system-spaces"],
  },
  {
    api: "chat",
    name: "loses prompt_cache_key",
    request: without("prompt_cache_key"),
    finds: "request lost extra.prompt_cache_key",
  },
  {
    api: "chat",
    name: "sends another tool choice",
    request: (body) => ("tool_choice" in body ? { ...body, tool_choice: "auto" } : body),
    finds: "request lost toolChoice",
  },
  {
    api: "chat",
    name: "loses parallel_tool_calls",
    request: without("parallel_tool_calls"),
    finds: "request lost parallelToolCalls",
    only: ["one-call"],
  },
  {
    api: "responses",
    name: "loses encrypted reasoning",
    request: (body) => ({ ...body, input: (body["input"] as Json[]).filter(({ type }) => type !== "reasoning") }),
    finds: "request",
  },
  {
    api: "responses",
    name: "moves instructions into a message",
    request: ({ instructions, ...body }) => ({
      ...body,
      input: [{ role: "user", content: String(instructions) }, ...(body["input"] as Json[])],
    }),
    finds: "request",
  },
  {
    api: "responses",
    name: "loses verbosity",
    request: everywhere(without("verbosity")),
    finds: "request lost verbosity",
    only: ["verbosity"],
  },
  // Answers.
  {
    api: "chat",
    name: "loses cached tokens in usage",
    answer: whole(everywhere(without("cached_tokens"))),
    finds: "answer lost usage.cached",
  },
  {
    api: "chat",
    name: "loses arguments of a call",
    answer: events((data) => (JSON.stringify(data).includes('"arguments":"{') ? undefined : data)),
    finds: "answer",
    only: ["call-"],
  },
  {
    api: "chat",
    name: "changes the finish reason",
    answer: (text) => text.replaceAll('"finish_reason":"length"', '"finish_reason":"stop"'),
    finds: "answer changed finish",
  },
  { api: "chat", name: "buffers streams", answer: (text) => text, finds: "transport delayed stream" },
  {
    api: "chat",
    name: "ends a broken stream as usual",
    ending:
      'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    answer: (text) => text,
    finds: "transport cut-without-error stream",
  },
  { api: "chat", name: "answers errors with 200", status: () => 200, finds: "answer error-changed status 429 status" },
  {
    api: "chat",
    name: "makes each error a 500",
    status: (status) => (status >= 400 ? 500 : status),
    finds: "answer error-changed status 429 status",
  },
  {
    api: "chat",
    name: "loses retry-after",
    answerHeaders: without("retry-after"),
    finds: "answer header-lost retry-after",
  },
  { api: "chat", name: "reads on when the client has left", readsOn: true, finds: "transport not-cancelled" },
  {
    api: "messages",
    name: "loses signatures of thinking",
    answer: events((data) => ((data["delta"] as Json | undefined)?.["type"] === "signature_delta" ? undefined : data)),
    finds: "answer",
  },
  {
    api: "messages",
    name: "loses the stop sequence",
    answer: (text) => text.replaceAll('"stop_sequence":"END"', '"stop_sequence":null'),
    finds: "answer lost stop",
    only: ["stop"],
  },
  {
    api: "messages",
    name: "merges parallel calls",
    answer: whole((body) => ({ ...body, content: ((body["content"] ?? []) as Json[]).slice(0, 1) })),
    finds: "answer lost calls",
    only: ["calls"],
  },
  {
    api: "responses",
    name: "loses encrypted reasoning of answers",
    answer: whole(everywhere(without("encrypted_content"))),
    finds: "answer",
    only: ["encrypted-reasoning"],
  },
  {
    api: "messages",
    name: "gives each client the answer of another",
    answer: (text) =>
      text.replaceAll("fact:text-whole.", "fact:text-stream.").replaceAll("fact:base.", "fact:user-17."),
    finds: "answer mixed-up",
  },
];
