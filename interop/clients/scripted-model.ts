import { writeProgrammedModel } from "../../test/fixtures/programmed-model.ts";
import { templateThatChooses } from "../../test/fixtures/programmed-template.ts";

/*
 * The model of ../fixtures/scripted.ts as one that llama.cpp runs: the same calls, results, values and greetings. What a request demands
 * besides, such as a schema, llama.cpp constrains. It never fails, so that a text "503 once" is answered at once.
 */

const call = (name: string, input: unknown): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
const result = "The result is 21 degrees.";

/** The first tool's call, by its name: those of the clients in interop/clients. */
const calls = { get_weather: { city: "Paris" }, GetWeather: { city: "Paris" }, final_answer: { answer: result } };

const scripts = {
  greeting: { say: ["<think>", "\nLet me", " think.", "\n</think>", "\n\n", "Hello ", "from ", "Truewire."] },
  result: { say: result },
  person: { say: JSON.stringify({ name: "Ada", age: 36, tags: ["x"] }) },
  ...Object.fromEntries(Object.entries(calls).map(([name, input]) => [name, { say: call(name, input) }])),
};

/**
 * The lines that choose a script: names that come from the request itself would not become control tokens. smolagents sends a result as a
 * user's text, "Observation: …", and its answer is a call of its tool final_answer.
 */
const choice = `{%- set last = messages[-1] -%}
{%- if last.role == 'tool' -%}{%- set chosen.script = 'result' -%}
{%- elif 'Observation:' in last.content -%}{%- set chosen.script = 'final_answer' -%}
${Object.keys(calls)
  .map((name) => `{%- elif tools and tools[0].function.name == '${name}' -%}{%- set chosen.script = '${name}' -%}`)
  .join("\n")}
{%- elif 'person' in last.content -%}{%- set chosen.script = 'person' -%}
{%- endif -%}`;

export function writeScriptedModel(path: string): void {
  writeProgrammedModel(path, { scripts, chatTemplate: templateThatChooses(choice) });
}
