import { oneOf } from "../random.ts";

const parameters = { type: "object", properties: { city: { type: "string" } } };

const tools = [
  { type: "function", name: "f", parameters, strict: false },
  { type: "function", name: "get_weather", description: "The weather", parameters },
  { type: "custom", name: "patch", description: "Changes a file" },
  { type: "namespace", name: "crm", description: "Customers", tools: [{ type: "function", name: "find", parameters }] },
];

/** A request of the Responses API of any kind, but for `stream`. */
export function responseRequest(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = { model: "m", input: "Hi" };
  if (random() < 0.5) {
    body.tools = tools;
    const named = { type: "function", name: "f" };
    const allowed = { type: "allowed_tools", mode: "auto", tools: [named, { type: "custom", name: "patch" }] };
    const choice = oneOf([undefined, "auto", "none", "required", named, allowed], random);
    if (choice !== undefined) body.tool_choice = choice;
    if (random() < 0.3) body.parallel_tool_calls = false;
  }
  if (body.tools === undefined && random() < 0.3) {
    const schema = {
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
      additionalProperties: false,
    };
    const format = oneOf([{ type: "json_object" }, { type: "json_schema", name: "n", schema, strict: true }], random);
    // JSON without a schema has to be asked for.
    if (format.type === "json_object") body.input = "Hi, as JSON";
    body.text = { format, ...(random() < 0.5 && { verbosity: "low" }) };
  }
  const include = [
    ...(random() < 0.3 ? ["message.output_text.logprobs"] : []),
    ...(random() < 0.3 ? ["reasoning.encrypted_content"] : []),
  ];
  if (include.length > 0) body.include = include;
  if (include.includes("message.output_text.logprobs")) body.top_logprobs = oneOf([0, 1, 3], random);
  if (random() < 0.5)
    body.reasoning = oneOf([{ summary: "auto" }, { effort: "low" }, { effort: "low", summary: "concise" }], random);
  if (random() < 0.3) body.max_output_tokens = 1000;
  if (random() < 0.3) Object.assign(body, { temperature: 0.5, top_p: 0.9 });
  if (random() < 0.2) Object.assign(body, { temperature: 0, instructions: "Be “brief”.", user: "u" });
  if (random() < 0.2) Object.assign(body, { metadata: { b: "1", a: "2" }, store: false, truncation: "auto" });
  return body;
}

/** The same, streamed: with or without obfuscation. */
export function streamedResponseRequest(body: Record<string, unknown>, random: () => number): Record<string, unknown> {
  const obfuscation = oneOf([undefined, undefined, undefined, false, true], random);
  const options = obfuscation !== undefined && { stream_options: { include_obfuscation: obfuscation } };
  return { ...body, stream: true, ...options };
}
