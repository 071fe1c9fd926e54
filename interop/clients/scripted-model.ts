import { writeProgrammedModel } from "../../test/fixtures/programmed-model.ts";
import { templateThatChooses } from "../../test/fixtures/programmed-template.ts";
import type { Script } from "../../test/fixtures/scripts.ts";

/*
 * The model of ../fixtures/scripted.ts as one that llama.cpp runs: the same calls, results, values and greetings. llama.cpp constrains what
 * else a request demands, such as a schema, whose members come in its order: name, age, tags. The model never fails, so a text "503 once" is
 * answered like any other. To "Slowly" it speaks until the client leaves, which happens later than a greeting takes.
 */

const call = (name: string, input: unknown): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
const result = "The result is 21 degrees.";

/** The first tool's call, by its name: those of the clients in interop/clients. */
const person = { name: "Paris", age: 21, tags: ["Paris"] };
const calls = {
  get_weather: { city: "Paris" },
  GetWeather: { city: "Paris" },
  final_answer: { answer: result },
  Person: person,
  PartialPerson: person,
};

const scripts: Readonly<Record<string, Script>> = {
  greeting: { say: ["<think>", "\nLet me", " think.", "\n</think>", "\n\n", "Hello", " from ", "Truewire."] },
  slowly: { say: ["Hello ", "again", " and", " again.\n"], afterwards: "repeat" },
  result: { say: result },
  person: { say: JSON.stringify(person) },
  // The Java SDKs write a class as a schema whose properties are in this order.
  alphabet: { say: JSON.stringify({ age: 21, name: "Paris", tags: ["Paris"] }) },
  answer: { say: JSON.stringify({ answer: "Paris" }) },
  ...Object.fromEntries(Object.entries(calls).map(([name, input]) => [name, { say: call(name, input) }])),
};

/**
 * The lines that choose a script: names that come from the request itself would not become control tokens. smolagents sends a result as a
 * user's text, "Observation: …", and its answer is a call of its tool final_answer. DSPy ends with the names of the fields that it wants.
 */
const choice = `{%- set last = messages[-1] -%}
{%- if last.role == 'tool' -%}{%- set chosen.script = 'result' -%}
{%- elif 'Observation:' in last.content -%}{%- set chosen.script = 'final_answer' -%}
${Object.keys(calls)
  .map((name) => `{%- elif tools and tools[0].function.name == '${name}' -%}{%- set chosen.script = '${name}' -%}`)
  .join("\n")}
{%- elif 'Slowly' in last.content -%}{%- set chosen.script = 'slowly' -%}
{%- elif 'order of fields' in last.content and 'answer' in last.content -%}{%- set chosen.script = 'answer' -%}
{%- elif 'by the alphabet' in last.content -%}{%- set chosen.script = 'alphabet' -%}
{%- elif 'person' in last.content or 'order of fields' in last.content -%}{%- set chosen.script = 'person' -%}
{%- endif -%}`;

export function writeScriptedModel(path: string): void {
  // smolagents sends instructions of more than 4,096 bytes, each of which is a token here.
  writeProgrammedModel(path, { scripts, chatTemplate: templateThatChooses(choice), contextLength: 16_384 });
}
