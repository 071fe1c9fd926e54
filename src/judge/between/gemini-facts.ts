import { call, pdf, png, schema, spaced, strictSchema, unicode, weather } from "./fact-values.ts";
import { type Edit, type Json, toolIn } from "./facts.ts";

const tools = [toolIn("gemini", weather)];
const args = JSON.parse(spaced) as Json;
const signature = "c2lnbmF0dXJlLW9mLWJldHdlZW4=";

const system = (...texts: readonly string[]): Json => ({
  systemInstruction: { parts: texts.map((text) => ({ text })) },
});
const config = (generationConfig: Json): Json => ({ generationConfig });

/** Puts parts before the user's text, which has the marker. */
function parts(...before: readonly Json[]): Edit {
  return (body) => {
    const [content] = body["contents"] as [{ role: string; parts: Json[] }];
    return { ...body, contents: [{ ...content, parts: [...before, ...content.parts] }] };
  };
}

/** Adds the model's parts, and the user's results, after the user's text. */
function round(model: readonly Json[], results: readonly Json[]): Edit {
  return (body) => ({
    ...body,
    tools,
    contents: [...(body["contents"] as Json[]), { role: "model", parts: model }, { role: "user", parts: results }],
  });
}

function called(id: string, input: Json = args): Json {
  return { functionCall: { id, name: call.name, args: input } };
}

function result(id: string, response: Json, more: Json = {}): Json {
  return { functionResponse: { id, name: call.name, response, ...more } };
}

const choice = (mode: string, more: Json = {}): Json => ({
  tools,
  toolConfig: { functionCallingConfig: { mode, ...more } },
});

/** The requests of Gemini's API, by the ids of their facts. Source: https://ai.google.dev/api/generate-content. */
export const geminiEdits: Readonly<Record<string, Edit>> = {
  "system-unicode": system(unicode),
  "system-spaces": system("\n  Indented.\n\n"),
  "system-long": system("A long rule. ".repeat(7700)),
  "system-blocks": system("First rule.", "Second rule."),
  "user-unicode": parts({ text: unicode }),
  image: parts({ inlineData: { mimeType: "image/png", data: png } }),
  document: parts({ inlineData: { mimeType: "application/pdf", data: pdf, displayName: "a.pdf" } }),
  temperature: config({ temperature: 0.3 }),
  "top-p": config({ topP: 0.7 }),
  "top-k": config({ topK: 17 }),
  "max-tokens": config({ maxOutputTokens: 777 }),
  stop: config({ stopSequences: ["END", "\n\nHuman:"] }),
  choices: config({ candidateCount: 2 }),
  seed: config({ seed: 42 }),
  penalties: config({ frequencyPenalty: 0.5, presencePenalty: -0.5 }),
  logprobs: config({ responseLogprobs: true, logprobs: 3 }),
  tools: { tools },
  "many-tools": {
    tools: [
      {
        functionDeclarations: Array.from({ length: 64 }, (_, at) => ({
          name: `tool_${64 - at}`,
          parametersJsonSchema: schema,
        })),
      },
    ],
  },
  "tool-choice": choice("ANY", { allowedFunctionNames: [call.name] }),
  "tool-required": choice("ANY"),
  "tool-none": choice("NONE"),
  "tool-round": round([{ text: "Let me look." }, called(call.id)], [result(call.id, { output: unicode })]),
  "parallel-round": round(
    [called(call.id), called(`${call.id}b`)],
    [result(call.id, { output: "first" }), result(`${call.id}b`, { output: "second" })],
  ),
  "failed-result": round([called(call.id, { city: "A" })], [result(call.id, { error: "no such city" })]),
  "image-result": round(
    [called(call.id, {})],
    [result(call.id, {}, { parts: [{ inlineData: { mimeType: "image/png", data: png } }] })],
  ),
  effort: config({ thinkingConfig: { thinkingLevel: "high", includeThoughts: true } }),
  "thinking-budget": config({ thinkingConfig: { thinkingBudget: 2048 } }),
  "call-signature": round([{ ...called(call.id), thoughtSignature: signature }], [result(call.id, { output: "rain" })]),
  "text-signature": (body) => ({
    ...body,
    contents: [
      { role: "user", parts: [{ text: "Hi" }] },
      { role: "model", parts: [{ text: "Hello", thoughtSignature: signature }] },
      ...(body["contents"] as Json[]),
    ],
  }),
  schema: config({ responseMimeType: "application/json", responseJsonSchema: strictSchema }),
  "answer-enum": config({ responseMimeType: "text/x.enum", responseSchema: { type: "STRING", enum: ["a", "b"] } }),
  prefill: (body) => ({
    ...body,
    contents: [...(body["contents"] as Json[]), { role: "model", parts: [{ text: "Once" }] }],
  }),
  history: (body) => ({
    ...body,
    contents: [
      ...Array.from({ length: 100 }, (_, at) => ({
        role: at % 2 === 0 ? "user" : "model",
        parts: [{ text: `Turn ${at}.` }],
      })),
      ...(body["contents"] as Json[]),
    ],
  }),
  "hosted-search": { tools: [{ googleSearch: {} }] },
};
