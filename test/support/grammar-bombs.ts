/** What one client could stop a model, or a whole server, with. */
export interface GrammarBomb {
  readonly name: string;
  /** Members of a chat request beside its messages. */
  readonly make: () => Readonly<Record<string, unknown>>;
  /** What the refusal must say, and where the cause stands; absent: it must be answered. */
  readonly told?: { readonly message: RegExp; readonly param?: string };
}

const manyRules = { message: /more than 20000 rules|more than 10 seconds to prepare|maximum context length/ };

export const grammarBombs: readonly GrammarBomb[] = [
  {
    name: "a pattern that backtracks for ever",
    make: () => schema({ const: `${"a".repeat(60)}!`, pattern: "^(a+)+$" }),
    told: { message: /allows no value|no text can satisfy/, param: "response_format.json_schema.schema" },
  },
  {
    name: "a property's name that backtracks",
    make: () =>
      schema({ type: "object", patternProperties: { "^(a+)+$": {} }, properties: { [`${"a".repeat(60)}!`]: {} } }),
  },
  {
    name: "a pattern with ever more ways, beside anything",
    make: () => schema({ type: "object", properties: { x: { pattern: "(x+x+)+y" }, more: {} }, required: ["x"] }),
  },
  { name: "an enum of 20,000 values", make: () => schema({ enum: texts(20_000) }) },
  { name: "100,000 choices", make: () => ({ guided_choice: texts(100_000) }) },
  ...[150, 160, 180, 200, 240, 280, 320, 500].map((times) => ({
    name: `optional parts, ${times} times`,
    make: () => ({ grammar: `root ::= ("a"? "b"?){1,${times}}` }),
  })),
  { name: "three optional parts, 100 times", make: () => ({ grammar: 'root ::= ("a"? "b"? "c"?){1,100}' }) },
  { name: "60 nested options", make: () => ({ grammar: `root ::= ${'("a" '.repeat(60)}${")?".repeat(60)}` }) },
  {
    name: "60 nested options of options",
    make: () => ({ grammar: `root ::= ${'("a"? '.repeat(60)}${")?".repeat(60)}` }),
  },
  { name: "rules that double", make: () => ({ grammar: doubling((next) => `${next} ${next}`) }) },
  { name: "alternatives that double", make: () => ({ grammar: doubling((next) => `${next} | ${next}`) }) },
  { name: "two ways for every space", make: () => ({ guided_regex: "(\\s|.)*x" }) },
  {
    name: "things in each other, with two ways each",
    make: () => ({ grammar: 'root ::= "a" root "b" | "a" root "c" | ""' }),
  },
  {
    name: "the same in a schema",
    make: () => {
      const list = (minItems: number): object => ({ type: "array", items: { $ref: "#" }, minItems });
      return schema({ anyOf: [list(1), list(2), list(3), { type: "null" }] });
    },
  },
  {
    name: "a rule that begins with itself, unseen by llama.cpp",
    make: () => ({ grammar: 'root ::= x root "a" | "b"\nx ::= y\ny ::= "c" | ""' }),
    told: { message: /the rule 'root' begins with itself/, param: "grammar" },
  },
  {
    name: "a repetition from 5 to 2",
    make: () => ({ grammar: 'root ::= "a"{5,2}' }),
    told: { message: /\{5,2\} is not a valid repetition/, param: "grammar" },
  },
  {
    name: "30,000 characters, 2,000 times",
    make: () => ({ grammar: `root ::= "${"a".repeat(30_000)}"{2000}` }),
    told: { message: /more than 250000 elements/, param: "grammar" },
  },
  {
    name: "20,000 parentheses",
    make: () => ({ grammar: `root ::= ${"(".repeat(20_000)}"a"${")".repeat(20_000)}` }),
    told: { message: /nested more than 200 deep/, param: "grammar" },
  },
  {
    name: "a regex of long alternatives",
    make: () => ({ guided_regex: `(${texts(800).join("|")}){1,200}` }),
  },
  {
    name: "500 strict tools of 60 enums",
    make: () => ({ tools: Array.from({ length: 500 }, (_, at) => strictTool(at)) }),
    told: manyRules,
  },
  { name: "a schema whose check is a promise", make: () => schema({ $async: true, type: "object" }) },
];

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `value ${at}`);
}

function doubling(body: (next: string) => string): string {
  const rules = Array.from({ length: 40 }, (_, at) => `${at === 0 ? "root" : `r${at}`} ::= ${body(`r${at + 1}`)}`);
  return [...rules, 'r40 ::= "a"'].join("\n");
}

function schema(value: unknown): Readonly<Record<string, unknown>> {
  return { response_format: { type: "json_schema", json_schema: { name: "bomb", schema: value } } };
}

function strictTool(at: number): unknown {
  const names = Array.from({ length: 60 }, (_, property) => `p${property}`);
  const properties = Object.fromEntries(names.map((name) => [name, { enum: [`${name}a`, `${name}b`] }]));
  const parameters = { type: "object", properties, required: names, additionalProperties: false };
  return { type: "function", function: { name: `tool_${at}`, strict: true, parameters } };
}
