import { strictVersion } from "../../../wire/apis/messages/request-schema.ts";
import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";
import { argumentNamed, bothWays, person, prompts, refused, saying, weatherFound } from "./prompts.ts";

const hello = saying(prompts.hello);
const count = saying(prompts.count);
const askWeather = saying(prompts.weather);

function tool(name: string, description: string, argument: string): Record<string, unknown> {
  return { name, description, input_schema: argumentNamed(argument) };
}
const weather = tool("get_weather", "The current weather in a city", "city");
const time = tool("get_time", "The current time in a time zone", "timezone");

const noCall = ({ response }: Exchange) =>
  /"type"\s*:\s*"tool_use"/.test(response.body) ? undefined : "the model called no tool";
const noReasoning = ({ response }: Exchange) =>
  /"type"\s*:\s*"thinking"/.test(response.body) ? undefined : "the model did not think";

function message(id: string, about: string, members: Record<string, unknown>, more: Partial<Probe> = {}): Probe {
  return {
    id: `messages/${id}`,
    about: `Messages: ${about}`,
    endpoint: "messages",
    method: "POST",
    path: () => "/messages",
    body: (model) => ({ model, max_tokens: 64, messages: hello, temperature: 0, ...members }),
    expects: "answer",
    ...more,
  };
}

const both = bothWays(message);
const wrong = refused(both);

/** Everything that `truewire check` asks of Anthropic's Messages API, in this order. */
export const messagesProbes: readonly Probe[] = [
  {
    id: "messages/models",
    about: "Messages: the list of models, in Anthropic's form",
    endpoint: "anthropic-models",
    method: "GET",
    path: () => "/models",
    expects: "answer",
  },
  {
    id: "messages/model",
    about: "Messages: one model, in Anthropic's form",
    endpoint: "anthropic-model",
    method: "GET",
    path: (model) => `/models/${encodeURIComponent(model)}`,
    expects: "answer",
  },
  {
    id: "messages/model/unknown",
    about: "Messages: a model that does not exist",
    endpoint: "anthropic-model",
    method: "GET",
    path: () => "/models/no-such-model",
    expects: { refusal: 404, param: null },
  },
  {
    id: "messages/count",
    about: "Messages: the tokens of a prompt",
    endpoint: "message-tokens",
    method: "POST",
    path: () => "/messages/count_tokens",
    body: (model) => ({ model, messages: hello, tools: [weather] }),
    // A server need not count.
    expects: "any",
  },
  ...both("text", "a short text", {}),
  message("beta", "with ?beta=true", {}, { path: () => "/messages?beta=true" }),
  ...both("version", "with version 2026-10-21", { temperature: undefined }, { version: strictVersion }),
  ...both("system", "a system prompt in blocks", {
    system: [
      { type: "text", text: "You are brief." },
      { type: "text", text: "You are kind.", cache_control: { type: "ephemeral" } },
    ],
  }),
  ...both("length", "an answer that is cut by max_tokens", { messages: count, max_tokens: 5 }),
  ...both("stop", "an answer that a stop sequence ends", {
    messages: count,
    stop_sequences: ["7", "5"],
    max_tokens: 128,
  }),
  ...both("unicode", "text beyond ASCII", {
    messages: saying(prompts.unicode),
  }),
  ...both("blocks", "a message in blocks, with a document", {
    messages: [
      {
        role: "user",
        content: [
          { type: "document", title: "Note", source: { type: "text", media_type: "text/plain", data: "Ada is 36." } },
          { type: "text", text: "How old is Ada?" },
        ],
      },
    ],
  }),
  ...both("history", "a conversation", {
    messages: [
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: [{ type: "text", text: "Hello Ada." }] },
      { role: "user", content: "What is my name?" },
    ],
  }),
  // Anthropic's newer models refuse it.
  ...both(
    "prefill",
    "an answer that is begun",
    { messages: [...hello, { role: "assistant", content: "Hello" }] },
    { expects: "any" },
  ),
  ...both("tools", "a tool that may be called", { messages: askWeather, tools: [weather] }, { notShown: noCall }),
  ...both(
    "tools-any",
    "a tool that must be called",
    { messages: askWeather, tools: [weather, time], tool_choice: { type: "any" } },
    { notShown: noCall },
  ),
  ...both(
    "tools-named",
    "one tool by name",
    { tools: [weather, time], tool_choice: { type: "tool", name: "get_time" } },
    { notShown: noCall },
  ),
  ...both("tools-none", "tools that must not be called", {
    messages: askWeather,
    tools: [weather],
    tool_choice: { type: "none" },
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
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      max_tokens: 128,
    },
    { notShown: noCall },
  ),
  ...both("tool-result", "results of tools in the history, one of them an error", {
    messages: [
      ...askWeather,
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "toolu_01A", name: "get_weather", input: { city: "Paris" } },
          { type: "tool_use", id: "toolu_01B", name: "get_weather", input: { city: "Rome" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_01A", content: weatherFound },
          {
            type: "tool_result",
            tool_use_id: "toolu_01B",
            content: [{ type: "text", text: "no such city" }],
            is_error: true,
          },
        ],
      },
    ],
    tools: [weather],
  }),
  ...both("json-schema", "JSON after a schema", {
    messages: saying(prompts.person),
    max_tokens: 200,
    output_config: { format: { type: "json_schema", schema: person } },
  }),
  // A model need not be able to think, or not to.
  ...both(
    "thinking",
    "with thinking",
    { thinking: { type: "enabled", budget_tokens: 1024 }, max_tokens: 1200, temperature: undefined },
    { expects: "any", notShown: noReasoning },
  ),
  ...both("thinking-disabled", "without thinking", { thinking: { type: "disabled" } }, { expects: "any" }),
  ...both("unknown-member", "an unknown member", { truewire_check: { any: ["thing"] } }, { expects: "any" }),
  ...wrong("no-max-tokens", "max_tokens left out", "max_tokens", { max_tokens: undefined }),
  ...wrong("max-tokens", "a negative max_tokens", "max_tokens", { max_tokens: -2 }),
  ...wrong("no-messages", "messages left out", "messages", { messages: undefined }),
  ...wrong("empty-messages", "no messages", "messages", { messages: [] }),
  ...wrong("role", "an unknown role", "messages", { messages: [{ role: "robot", content: "hi" }] }),
  ...wrong("temperature", "a temperature of 3", "temperature", { temperature: 3 }),
  ...wrong("stop-type", "a number for the stop sequences", "stop_sequences", { stop_sequences: 7 }),
  ...wrong("tool-choice", "a tool_choice without tools", "tool_choice", { tool_choice: { type: "any" } }),
  ...wrong("tool-unknown", "a tool_choice that names no tool", "tool_choice", {
    tools: [weather],
    tool_choice: { type: "tool", name: "no_such_tool" },
  }),
  ...wrong("tool-schema", "a tool without its schema", "tools", { tools: [{ name: "hammer" }] }),
  ...wrong("model", "a request for a model that does not exist", "model", { model: "no-such-model" }, 404),
  message(
    "wrong/version",
    "an unknown version",
    { temperature: undefined },
    { version: "2099-01-01", profile: "exact", expects: { refusal: 400, param: "anthropic-version" } },
  ),
  message(
    "wrong/version-temperature",
    "a temperature with version 2026-10-21",
    { temperature: 1 },
    { version: strictVersion, profile: "exact", expects: { refusal: 400, param: "temperature" } },
  ),
  message(
    "wrong/json",
    "a body that is not JSON",
    {},
    { rawBody: '{"model": "x", ', expects: { refusal: 400, param: null } },
  ),
];
