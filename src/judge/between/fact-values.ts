import { toolIn } from "./facts.ts";

/*
 * What the facts send: values whose loss or change can be seen.
 */

/** One pixel. */
export const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const pdf = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString(
  "base64",
);
export const unicode = 'Ünïcödé 👩‍👩‍👧 \u202Eright\u202C नमस्ते e\u0301 \u2028 \\u0041 "quoted" \t tab';
export const spaced = '{"city":  "Zürich", "days":[1,2]}';

export const schema = {
  type: "object",
  properties: {
    city: { type: "string", description: "A city, such as Zürich", minLength: 1, pattern: "^[A-Z]" },
    unit: { enum: ["c", "f"], default: "c" },
    days: { type: "array", items: { type: "integer", minimum: 1, maximum: 7 }, maxItems: 3 },
    place: { anyOf: [{ $ref: "#/$defs/point" }, { type: "null" }] },
    größe: { type: "number", exclusiveMinimum: 0 },
  },
  required: ["city"],
  additionalProperties: false,
  $defs: { point: { type: "object", properties: { lat: { type: "number" }, lon: { type: "number" } } } },
};
export const strictSchema = {
  type: "object",
  properties: { answer: { type: "string" }, steps: { type: "array", items: { type: "string" } } },
  required: ["answer", "steps"],
  additionalProperties: false,
};

/** The tool of most facts. */
export const weather = { name: "get_weather", description: "The weather of a city", parameters: schema };
export const chatTool = toolIn("chat", weather);
export const responsesTool = toolIn("responses", weather);
export const messagesTool = toolIn("messages", weather);

/** A call of that tool, in the form of OpenAI's ids. */
export const call = { id: "call_between0000000000001", name: weather.name };
