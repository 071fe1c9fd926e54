/** What one client could stop a model, or a whole server, with: members of a chat request beside its messages. */
export const grammarBombs: Readonly<Record<string, () => Readonly<Record<string, unknown>>>> = {
  "a pattern that backtracks for ever": () => schema({ const: `${"a".repeat(60)}!`, pattern: "^(a+)+$" }),
  "a property's name that backtracks": () =>
    schema({ type: "object", patternProperties: { "^(a+)+$": {} }, properties: { [`${"a".repeat(60)}!`]: {} } }),
  "an enum of 20,000 values": () => schema({ enum: Array.from({ length: 20_000 }, (_, at) => `value ${at}`) }),
  "100,000 choices": () => ({ guided_choice: Array.from({ length: 100_000 }, (_, at) => `choice ${at}`) }),
  "optional parts, 500 times": () => ({ grammar: 'root ::= ("a"? "b"?){1,500}' }),
  "60 nested options": () => ({ grammar: `root ::= ${'("a" '.repeat(60)}${")?".repeat(60)}` }),
  "rules that double": () => ({
    grammar: Array.from({ length: 40 }, (_, at) => `${at === 0 ? "root" : `r${at}`} ::= r${at + 1} r${at + 1}`)
      .concat('r40 ::= "a"')
      .join("\n"),
  }),
  "20,000 parentheses": () => ({ grammar: `root ::= ${"(".repeat(20_000)}"a"${")".repeat(20_000)}` }),
  "a regex of long alternatives": () => ({ guided_regex: `(${"abcdefgh|".repeat(3000)}x){1,200}` }),
  "500 strict tools of 60 enums": () => ({ tools: Array.from({ length: 500 }, (_, at) => strictTool(at)) }),
  "a schema whose check is a promise": () => schema({ $async: true, type: "object" }),
};

function schema(value: unknown): Readonly<Record<string, unknown>> {
  return { response_format: { type: "json_schema", json_schema: { name: "bomb", schema: value } } };
}

function strictTool(at: number): unknown {
  const names = Array.from({ length: 60 }, (_, property) => `p${property}`);
  const properties = Object.fromEntries(names.map((name) => [name, { enum: [`${name}a`, `${name}b`] }]));
  const parameters = { type: "object", properties, required: names, additionalProperties: false };
  return { type: "function", function: { name: `tool_${at}`, strict: true, parameters } };
}
