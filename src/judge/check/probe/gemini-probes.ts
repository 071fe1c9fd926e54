import type { Exchange } from "../rules/exchange.ts";
import type { Probe } from "./probe.ts";
import { argumentNamed, person, prompts, weatherFound } from "./prompts.ts";

const user = (text: string): object => ({ role: "user", parts: [{ text }] });
const hello = [user(prompts.hello)];
const count = [user(prompts.count)];
const weather = {
  name: "get_weather",
  description: "The current weather in a city",
  parametersJsonSchema: argumentNamed("city"),
};
const tools = [{ functionDeclarations: [weather] }];
const calling = (mode: string): object => ({ functionCallingConfig: { mode } });

const noCall = ({ response }: Exchange) =>
  /"functionCall"\s*:/.test(response.body) ? undefined : "the model called no function";
const noThought = ({ response }: Exchange) =>
  /"thought"\s*:\s*true/.test(response.body) ? undefined : "the model did not think";

/** The paths are next to the base URL, which ends with `/v1`. */
const at =
  (rest: string) =>
  (model: string): string =>
    `/../v1beta/models/${model.split("/").map(encodeURIComponent).join("/")}${rest}`;

/** Whole, as events, and as a list. */
const ways = [
  ["", ":generateContent", ""],
  ["/stream", ":streamGenerateContent?alt=sse", ", streamed"],
  ["/list", ":streamGenerateContent", ", streamed as a list"],
] as const;

interface Asked {
  readonly contents?: unknown;
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

function generating(
  id: string,
  about: string,
  { generationConfig, ...members }: Asked,
  more: Partial<Probe> = {},
  chosen: readonly (typeof ways)[number][] = ways.slice(0, 2),
): Probe[] {
  return chosen.map(([end, method, how]) => ({
    id: `gemini/${id}${end}`,
    about: `Gemini: ${about}${how}`,
    endpoint: "gemini",
    method: "POST",
    path: at(method),
    body: () => ({
      contents: hello,
      generationConfig: { temperature: 0, maxOutputTokens: 64, ...generationConfig },
      ...members,
    }),
    expects: "answer",
    ...more,
  }));
}

function about(
  id: string,
  words: string,
  endpoint: Exchange["endpoint"],
  path: Probe["path"],
  more: Partial<Probe> = {},
): Probe {
  return { id: `gemini/${id}`, about: `Gemini: ${words}`, endpoint, method: "GET", path, expects: "answer", ...more };
}

const refusal = (status: number): Partial<Probe> => ({ expects: { refusal: status, param: null } });

/** What `truewire check --only gemini` asks of Gemini's API, in this order. */
export const geminiProbes: readonly Probe[] = [
  about("models", "the models", "gemini-models", () => "/../v1beta/models"),
  about("model", "one model", "gemini-model", at("")),
  about("count", "the tokens of a prompt", "gemini-tokens", at(":countTokens"), {
    method: "POST",
    body: () => ({ contents: hello }),
  }),
  ...generating("text", "a short text", {}, {}, ways),
  ...generating("system", "an instruction", { systemInstruction: { parts: [{ text: "Be brief." }] } }),
  ...generating("length", "an answer that is cut by maxOutputTokens", {
    contents: count,
    generationConfig: { maxOutputTokens: 5 },
  }),
  ...generating("stop", "an answer that a stop sequence ends", {
    contents: count,
    generationConfig: { stopSequences: ["7", "5"], maxOutputTokens: 128 },
  }),
  ...generating("unicode", "text beyond ASCII", { contents: [user(prompts.unicode)] }),
  ...generating(
    "thinking",
    "thoughts",
    { generationConfig: { thinkingConfig: { includeThoughts: true }, maxOutputTokens: 512 } },
    { expects: "any", notShown: noThought },
  ),
  ...generating(
    "no-thinking",
    "no thoughts",
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
    { expects: "any" },
  ),
  ...generating("json", "an answer in JSON", {
    contents: [user(prompts.person)],
    generationConfig: { responseMimeType: "application/json", maxOutputTokens: 256 },
  }),
  ...generating("schema", "an answer that follows a schema", {
    contents: [user(prompts.person)],
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: person, maxOutputTokens: 256 },
  }),
  ...generating(
    "function",
    "a function that may be called",
    { contents: [user(prompts.weather)], tools },
    { expects: "any", notShown: noCall },
    ways,
  ),
  ...generating(
    "function-any",
    "a function that must be called",
    {
      contents: [user(prompts.weather)],
      tools,
      toolConfig: calling("ANY"),
      generationConfig: { maxOutputTokens: 512 },
    },
    { notShown: noCall },
  ),
  ...generating("function-none", "a function that may not be called", {
    contents: [user(prompts.weather)],
    tools,
    toolConfig: calling("NONE"),
  }),
  ...generating(
    "function-result",
    "the result of a function in the history",
    {
      contents: [
        user(prompts.weather),
        { role: "model", parts: [{ functionCall: { name: "get_weather", args: { city: "Paris" } } }] },
        { role: "user", parts: [{ functionResponse: { name: "get_weather", response: { output: weatherFound } } }] },
      ],
      tools,
    },
    { expects: "any" },
  ),
  ...generating("candidates", "two candidates", { generationConfig: { candidateCount: 2 } }, { expects: "any" }),
  ...generating(
    "logprobs",
    "log probabilities",
    { generationConfig: { responseLogprobs: true, logprobs: 2 } },
    { expects: "any" },
  ),
  about("embedding", "an embedding", "gemini-embedding", at(":embedContent"), {
    method: "POST",
    body: () => ({ content: { parts: [{ text: "Hello" }] } }),
    expects: "any",
  }),
  about("embeddings", "two embeddings", "gemini-embeddings", at(":batchEmbedContents"), {
    method: "POST",
    body: (model) => ({
      requests: ["Hello", "there"].map((text) => ({ model: `models/${model}`, content: { parts: [{ text }] } })),
    }),
    expects: "any",
  }),
  ...generating("wrong/contents", "no contents", { contents: [] }, refusal(400)),
  ...generating("wrong/type", "contents that are a number", { contents: 7 }, refusal(400)),
  ...generating(
    "wrong/temperature",
    "a temperature in words",
    { generationConfig: { temperature: "warm" } },
    refusal(400),
  ),
  ...generating("wrong/json", "a body that is not JSON", {}, { rawBody: '{"contents": ', ...refusal(400) }),
  ...generating(
    "wrong/model",
    "a model that does not exist",
    {},
    {
      path: () => "/../v1beta/models/no-such-model:generateContent",
      ...refusal(404),
    },
  ).slice(0, 1),
];
