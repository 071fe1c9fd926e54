import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";
import { isRefusalOfProbe, profileProbes } from "./profile-probes.ts";
import type { Judged } from "./judged.ts";
import { argumentNamed, bothWays, person, prompts, refused, saying, weatherFound } from "./prompts.ts";
import { responseProbes } from "./response-probes.ts";

const hello = saying(prompts.hello);
const count = saying(prompts.count);
const askWeather = saying(prompts.weather);

function tool(name: string, description: string, argument: string): Record<string, unknown> {
  return { type: "function", function: { name, description, parameters: argumentNamed(argument) } };
}
const weather = tool("get_weather", "The current weather in a city", "city");
const time = tool("get_time", "The current time in a time zone", "timezone");

const noCall = (exchange: Exchange) =>
  /"tool_calls"\s*:\s*\[/.test(exchange.response.body) ? undefined : "the model called no tool";
const noText = (exchange: Exchange) =>
  /"content"\s*:\s*"[^"]/.test(exchange.response.body) ? undefined : "the model said nothing";

function chat(id: string, about: string, members: Record<string, unknown>, more: Partial<Probe> = {}): Probe {
  const body = (model: string) => ({ model, messages: hello, temperature: 0, max_tokens: 64, ...members });
  return {
    id,
    about,
    endpoint: "chat",
    method: "POST",
    path: () => "/chat/completions",
    body,
    expects: "answer",
    ...more,
  };
}

const both = bothWays(chat);
const wrong = refused(both);

/** How the ids of the probes begin that ask what a server accepts: those of a server's profile. */
const acceptsPrefix = "accepts/";

/**
 * What a check has shown that the server does not accept, as a sentence without its full stop; none if it accepts everything. A gateway
 * adapts requests to such a server.
 */
export function refusedFeatures(judged: readonly Judged[]): string[] {
  const refused = judged.flatMap(({ id, about, result }) => {
    const status = result?.exchange?.response.status;
    return id.startsWith(acceptsPrefix) && status !== undefined && isRefusalOfProbe(status) ? [about] : [];
  });
  return refused.length === 0 ? [] : [`the server does not accept ${refused.join(", ")}`];
}

/** Everything that `truewire check` sends, in this order. */
export const probes: readonly Probe[] = [
  {
    id: "models",
    about: "the list of models",
    endpoint: "models",
    method: "GET",
    path: () => "/models",
    expects: "answer",
  },
  {
    id: "model",
    about: "one model",
    endpoint: "model",
    method: "GET",
    path: (model) => `/models/${encodeURIComponent(model)}`,
    expects: "answer",
  },
  {
    id: "model/unknown",
    about: "a model that does not exist",
    endpoint: "model",
    method: "GET",
    path: () => "/models/no-such-model",
    expects: { refusal: 404, param: "model" },
  },
  ...both("text", "a short text", {}),
  chat("usage/stream", "a stream with usage", { stream: true, stream_options: { include_usage: true } }),
  chat("no-usage/stream", "a stream without usage", { stream: true, stream_options: { include_usage: false } }),
  ...[true, false].map((wanted) =>
    chat(
      `obfuscation-${wanted ? "on" : "off"}/stream`,
      `a stream ${wanted ? "with" : "without"} obfuscation`,
      { stream: true, stream_options: { include_obfuscation: wanted } },
      { expects: "any" },
    ),
  ),
  ...both("length", "an answer that is cut by max_tokens", { messages: count, max_tokens: 5 }),
  ...both("stop", "an answer that a stop string ends", { messages: count, stop: ["7", "5"], max_tokens: 128 }),
  ...both("n", "two choices", { n: 2 }, { expects: "any" }),
  ...both("logprobs", "log probabilities", { logprobs: true, top_logprobs: 3 }, { expects: "any", notShown: noText }),
  ...both("unicode", "text beyond ASCII", {
    messages: saying(prompts.unicode),
  }),
  ...both("parts", "a message in parts", {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Say " },
          { type: "text", text: "hi." },
        ],
      },
    ],
  }),
  ...both("history", "a conversation", {
    messages: [
      { role: "system", content: "You are brief." },
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: "Hello Ada." },
      { role: "user", content: "What is my name?" },
    ],
  }),
  ...both("tools", "a tool that may be called", { messages: askWeather, tools: [weather] }, { notShown: noCall }),
  ...both(
    "tools-required",
    "a tool that must be called",
    { messages: askWeather, tools: [weather, time], tool_choice: "required" },
    { notShown: noCall },
  ),
  ...both(
    "tools-named",
    "one tool by name",
    { messages: hello, tools: [weather, time], tool_choice: { type: "function", function: { name: "get_time" } } },
    { notShown: noCall },
  ),
  ...both("tools-none", "tools that must not be called", {
    messages: askWeather,
    tools: [weather],
    tool_choice: "none",
  }),
  ...both(
    "tools-parallel",
    "two parallel calls",
    {
      messages: saying(prompts.twoCities),
      tools: [weather],
      max_tokens: 128,
    },
    { notShown: noCall },
  ),
  ...both(
    "tools-single",
    "one call at most",
    {
      messages: saying(prompts.oneCity),
      tools: [weather],
      parallel_tool_calls: false,
      max_tokens: 128,
    },
    { notShown: noCall },
  ),
  chat(
    "tools-usage/stream",
    "a tool call with usage, streamed",
    { messages: askWeather, tools: [weather], stream: true, stream_options: { include_usage: true } },
    { notShown: noCall },
  ),
  ...both("tool-result", "a tool's result in the history", {
    messages: [
      ...askWeather,
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: weatherFound },
    ],
    tools: [weather],
  }),
  ...both("json", "any JSON object", {
    messages: [{ role: "user", content: "Give me a JSON object with one member, name." }],
    response_format: { type: "json_object" },
    max_tokens: 200,
  }),
  ...both("json-schema", "JSON after a schema", {
    messages: saying(prompts.person),
    max_tokens: 200,
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "person",
        strict: true,
        schema: person,
      },
    },
  }),
  ...both("long", "a long input", {
    messages: [
      { role: "user", content: `${"The quick brown fox jumps over the lazy dog. ".repeat(40)}\nWhat animal is quick?` },
    ],
  }),
  // The specification allows null here. It does not for response_format, tools, tool_choice, parallel_tool_calls, top_logprobs and user.
  ...both("nulls", "members that are null", {
    stop: null,
    seed: null,
    logit_bias: null,
    stream_options: null,
    n: null,
    top_p: null,
    frequency_penalty: null,
    presence_penalty: null,
    logprobs: null,
    max_completion_tokens: null,
  }),
  ...both("unknown-member", "an unknown member", { truewire_check: { any: ["thing"] } }, { expects: "any" }),
  ...both("max-completion-tokens", "max_completion_tokens", {
    max_tokens: undefined,
    max_completion_tokens: 5,
    messages: count,
  }),
  ...profileProbes.map(({ id, about, members }) => chat(`${acceptsPrefix}${id}`, about, members, { expects: "any" })),
  completion("completion", "a completion", {}),
  completion("completion/stream", "a completion, streamed", { stream: true }),
  completion("completion-usage/stream", "a completion with usage, streamed", {
    stream: true,
    stream_options: { include_usage: true },
  }),
  ...[false, true].flatMap((stream) => {
    const [end, how] = stream ? ["/stream", ", streamed"] : ["", ""];
    return [
      completion(`completion-logprobs${end}`, `a completion with log probabilities${how}`, { logprobs: 2, stream }),
      // The first token of a prompt has no log probability; servers have sent NaN there.
      completion(`completion-echo${end}`, `an echoed prompt with log probabilities${how}`, {
        echo: true,
        logprobs: 2,
        max_tokens: 4,
        stream,
      }),
    ];
  }),
  ...responseProbes,
  embedding("embedding", "an embedding", { input: "The food was delicious." }),
  embedding("embedding-list", "two embeddings in one request", {
    input: ["The food was delicious.", "And the waiter."],
  }),
  embedding("embedding-base64", "an embedding in base64", { input: "The food.", encoding_format: "base64" }),
  ...wrong("empty-messages", "no messages", "messages", { messages: [] }),
  ...wrong("no-messages", "messages left out", "messages", { messages: undefined }),
  ...wrong("role", "an unknown role", "messages[0].role", { messages: [{ role: "robot", content: "hi" }] }),
  ...wrong("part-type", "an unknown kind of part", "messages[0].content[0].type", {
    messages: [{ role: "user", content: [{ type: "smell", smell: "rose" }] }],
  }),
  ...wrong("temperature", "a temperature of 3", "temperature", { temperature: 3 }),
  ...wrong("temperature-type", "a temperature in words", "temperature", { temperature: "warm" }),
  ...wrong("n-zero", "no choices at all", "n", { n: 0 }),
  ...wrong("max-tokens", "a negative max_tokens", "max_tokens", { max_tokens: -2 }),
  ...wrong("tool-choice", "a tool_choice without tools", "tool_choice", { tool_choice: "required" }),
  ...wrong("tool-unknown", "a tool_choice that names no tool", "tool_choice", {
    tools: [weather],
    tool_choice: { type: "function", function: { name: "no_such_tool" } },
  }),
  ...wrong("tool-type", "a tool of an unknown type", "tools[0].type", { tools: [{ type: "hammer" }] }),
  ...wrong("top-logprobs", "top_logprobs without logprobs", "top_logprobs", { top_logprobs: 3 }),
  ...wrong("model", "a model that does not exist", null, { model: "no-such-model" }, 404),
  chat(
    "wrong/json",
    "a body that is not JSON",
    {},
    { rawBody: '{"model": "x", ', expects: { refusal: 400, param: null } },
  ),
  {
    id: "wrong/route",
    about: "a path that does not exist",
    endpoint: "other",
    method: "POST",
    path: () => "/no/such/path",
    body: () => ({}),
    expects: { refusal: 404, param: null },
  },
];

/** A server, or its model, without embeddings is legal; the rules judge what it sends. */
function embedding(id: string, about: string, members: Record<string, unknown>): Probe {
  const body = (model: string) => ({ model, ...members });
  return { id, about, endpoint: "embeddings", method: "POST", path: () => "/embeddings", body, expects: "any" };
}

/** A server without the legacy endpoint is legal; the rules judge what it sends. */
function completion(id: string, about: string, members: Record<string, unknown>): Probe {
  const body = (model: string) => ({ model, prompt: "Once upon a time", temperature: 0, max_tokens: 16, ...members });
  return { id, about, endpoint: "completions", method: "POST", path: () => "/completions", body, expects: "any" };
}
