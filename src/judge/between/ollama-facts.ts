import { call, png, schema, spaced, strictSchema, unicode, weather } from "./fact-values.ts";
import { type Edit, type Json, toolIn } from "./facts.ts";

const tools = [toolIn("ollama", weather)];
const input = JSON.parse(spaced) as Json;

const system = (text: string): Edit => turns((own) => [{ role: "system", content: text }, own]);
const options = (own: Json): Json => ({ options: own });

/** Puts other messages around the user's, which has the marker. */
function turns(around: (own: Json) => readonly (Json | undefined)[], more: Json = {}): Edit {
  return (body) => {
    const [instructions, own = {}] = body["messages"] as Json[];
    const messages = around(own);
    const isWhole = messages[0]?.["role"] === "system";
    return { ...body, ...more, messages: isWhole ? messages : [instructions, ...messages] };
  };
}

function called(id: string, args: Json = input): Json {
  return { id, function: { name: call.name, arguments: args } };
}

function result(id: string, content: string): Json {
  return { role: "tool", tool_name: call.name, tool_call_id: id, content };
}

/** The requests of Ollama's API, by the ids of their facts. Source: ollama 0.33.0, api/types.go. */
export const ollamaEdits: Readonly<Record<string, Edit>> = {
  "system-unicode": system(unicode),
  "system-spaces": system("\n  Indented.\n\n"),
  "system-long": system("A long rule. ".repeat(7700)),
  "system-blocks": turns((own) => [
    { role: "system", content: "First rule." },
    { role: "system", content: "Second rule." },
    own,
  ]),
  "user-unicode": turns((own) => [{ ...own, content: `${unicode}\n${String(own["content"])}` }]),
  image: turns((own) => [{ ...own, images: [png] }]),
  temperature: options({ temperature: 0.3 }),
  "top-p": options({ top_p: 0.7 }),
  "top-k": options({ top_k: 17 }),
  "min-p": options({ min_p: 0.05 }),
  "repeat-penalty": options({ repeat_penalty: 1.2, repeat_last_n: 32 }),
  "max-tokens": options({ num_predict: 777 }),
  stop: options({ stop: ["END", "\n\nHuman:"] }),
  seed: options({ seed: 42 }),
  penalties: options({ frequency_penalty: 0.5, presence_penalty: -0.5 }),
  logprobs: { logprobs: true, top_logprobs: 3 },
  tools: { tools },
  "many-tools": {
    tools: Array.from({ length: 64 }, (_, at) => toolIn("ollama", { name: `tool_${64 - at}`, parameters: schema })),
  },
  "tool-round": turns(
    (own) => [
      own,
      { role: "assistant", content: "Let me look.", tool_calls: [called(call.id)] },
      result(call.id, unicode),
    ],
    { tools },
  ),
  "parallel-round": turns(
    (own) => [
      own,
      { role: "assistant", content: "", tool_calls: [called(call.id), called(`${call.id}b`, { city: "Ab" })] },
      result(call.id, "first"),
      result(`${call.id}b`, "second"),
    ],
    { tools },
  ),
  "thinking-text": turns(
    (own) => [
      own,
      { role: "assistant", content: "", thinking: "The user wants the weather.", tool_calls: [called(call.id)] },
      result(call.id, "rain"),
    ],
    { tools, think: true },
  ),
  effort: { think: "high" },
  "thinking-off": { think: false },
  schema: { format: strictSchema },
  "json-object": { format: "json" },
  prefill: turns((own) => [own, { role: "assistant", content: "Once" }]),
  history: turns((own) => [
    ...Array.from({ length: 100 }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `Turn ${at}.` })),
    own,
  ]),
  "keep-alive": { keep_alive: "17m" },
  context: options({ num_ctx: 16_384 }),
};
