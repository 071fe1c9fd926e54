import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";
import { argumentNamed, person, prompts, saying, weatherFound } from "./prompts.ts";

const hello = saying(prompts.hello);
const tools = [
  {
    type: "function",
    function: { name: "get_weather", description: "The current weather in a city", parameters: argumentNamed("city") },
  },
];

const noCall = ({ response }: Exchange) =>
  /"tool_calls"\s*:\s*\[/.test(response.body) ? undefined : "the model called no tool";
const noThinking = ({ response }: Exchange) =>
  /"thinking"\s*:\s*"/.test(response.body) ? undefined : "the model did not think";

/** The paths are next to the base URL, which ends with `/v1`. */
const at = (path: string) => (): string => `/../api${path}`;

function generating(kind: "chat" | "generate") {
  return (id: string, about: string, members: Record<string, unknown>, more: Partial<Probe> = {}): Probe[] =>
    [false, true].map((stream) => ({
      id: `ollama/${id}${stream ? "/stream" : ""}`,
      about: `Ollama: ${about}${stream ? ", streamed" : ""}`,
      endpoint: `ollama-${kind}`,
      method: "POST",
      path: at(`/${kind}`),
      body: (model) => ({
        model,
        ...(kind === "chat" ? { messages: hello } : { prompt: prompts.hello }),
        stream,
        ...members,
        options: { temperature: 0, num_predict: 64, ...(members.options as object | undefined) },
      }),
      expects: "answer",
      ...more,
    }));
}

const chat = generating("chat");
const generate = generating("generate");

function about(name: string, words: string, more: Partial<Probe> = {}): Probe {
  return {
    id: `ollama/${name}`,
    about: `Ollama: ${words}`,
    endpoint: `ollama-${name}` as Exchange["endpoint"],
    method: "GET",
    path: at(`/${name}`),
    expects: "answer",
    ...more,
  };
}

/** What `truewire check --only ollama` asks of Ollama's own API, in this order. */
export const ollamaProbes: readonly Probe[] = [
  about("version", "the version"),
  about("tags", "the models"),
  about("ps", "the loaded models"),
  about("show", "one model", { method: "POST", body: (model) => ({ model }) }),
  ...chat("chat", "a short text", {}),
  ...chat("length", "an answer that is cut by num_predict", {
    messages: saying(prompts.count),
    options: { num_predict: 5 },
  }),
  ...chat("stop", "an answer that a stop string ends", {
    messages: saying(prompts.count),
    options: { stop: ["7", "5"], num_predict: 128 },
  }),
  ...chat("unicode", "text beyond ASCII", { messages: saying(prompts.unicode) }),
  ...chat("think", "reasoning", { think: true }, { expects: "any", notShown: noThinking }),
  ...chat("no-think", "no reasoning", { think: false }, { expects: "any" }),
  ...chat("format", "an answer that follows a schema", { messages: saying(prompts.person), format: person }),
  ...chat("json", "an answer in JSON", { messages: saying(prompts.person), format: "json" }),
  ...chat(
    "tools",
    "a tool that may be called",
    { messages: saying(prompts.weather), tools },
    { expects: "any", notShown: noCall },
  ),
  ...chat(
    "tool-result",
    "a tool's result in the history",
    {
      messages: [
        ...saying(prompts.weather),
        {
          role: "assistant",
          content: "",
          tool_calls: [{ function: { name: "get_weather", arguments: { city: "Paris" } } }],
        },
        { role: "tool", tool_name: "get_weather", content: weatherFound },
      ],
      tools,
    },
    { expects: "any" },
  ),
  ...chat("logprobs", "log probabilities", { logprobs: true, top_logprobs: 2 }, { expects: "any" }),
  ...generate("generate", "a prompt", {}),
  ...generate("raw", "a prompt without a template", { raw: true }),
  ...chat("load", "a request that only loads the model", { messages: [] }),
  {
    ...about("embed", "embeddings", { method: "POST", body: (model) => ({ model, input: ["Hello", "there"] }) }),
    expects: "any",
  },
  {
    ...about("embeddings", "embeddings, the older form", {
      method: "POST",
      body: (model) => ({ model, prompt: "Hi" }),
    }),
    expects: "any",
  },
  ...chat("wrong/model", "a model that does not exist", { model: "no-such-model" }, refusal(404)),
  ...chat("wrong/no-model", "no model", { model: undefined }, refusal(400)),
  ...chat("wrong/messages", "messages that are a text", { messages: "Hi" }, refusal(400)),
  ...chat("wrong/think", "an unknown level of reasoning", { think: "huge" }, refusal(400)),
  ...chat("wrong/top_logprobs", "too many alternatives", { logprobs: true, top_logprobs: 21 }, refusal(400)),
  {
    ...about("wrong/json", "a body that is not JSON", refusal(400)),
    endpoint: "ollama-chat",
    method: "POST",
    path: at("/chat"),
    rawBody: '{"model": ',
  },
];

function refusal(status: number): Partial<Probe> {
  return { expects: { refusal: status, param: null } };
}
