import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";

/** JSON as Python's `json.dumps(value, indent=2)` writes it, and so OpenAI its whole responses: nothing but ASCII. */
export function pythonJson(value: JsonValue): string {
  return jsonText(value, 2).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
