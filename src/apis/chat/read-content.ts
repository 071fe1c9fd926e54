import type { RepairLog } from "../tolerant/repairs.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** The text, reasoning and refusal that one delta or message holds; "" where it holds none. */
export interface ReadContent {
  text: string;
  reasoning: string;
  refusal: string;
}

/**
 * Reads `content` in its shapes (a string, parts, null, a number) and reasoning under its names: `reasoning_content` (DeepSeek, vLLM,
 * SGLang, llama.cpp), `reasoning` (OpenRouter, Groq, Ollama), `reasoning_text` (Copilot), `thinking`, `reasoning_details[]`
 * (OpenRouter), and parts of type "thinking" (Mistral). A source that says the same under two names is read once.
 */
export function readContent(delta: JsonObject, repairs: RepairLog): ReadContent {
  const content = delta["content"];
  const found: ReadContent = { text: "", reasoning: reasoningOf(delta, repairs), refusal: "" };
  if (typeof content === "string") found.text = content;
  else if (content !== null && content !== undefined) {
    repairs.note("content");
    if (Array.isArray(content)) for (const part of content) addPart(part, found);
    else if (isObject(content)) addPart(content, found);
    else found.text = String(content);
  }
  const refusal = delta["refusal"];
  if (typeof refusal === "string") found.refusal += refusal;
  return found;
}

function reasoningOf(delta: JsonObject, repairs: RepairLog): string {
  const own = delta["reasoning_content"];
  if (typeof own === "string" && own !== "") return own;
  for (const name of ["reasoning", "reasoning_text", "thinking", "reasoning_content", "reasoning_details"]) {
    const text = plainText(delta[name]);
    if (text === "") continue;
    repairs.note("reasoning-field");
    return text;
  }
  return "";
}

/** One part of a content list. */
function addPart(part: unknown, found: ReadContent): void {
  if (!isObject(part)) {
    found.text += plainText(part);
    return;
  }
  const type = part["type"];
  if (type === "thinking" || type === "reasoning") found.reasoning += plainText(part);
  else if (type === "refusal") found.refusal += plainText(part["refusal"]);
  else found.text += plainText(part);
}

/** The words of a string, a number, an object that holds text under a usual name, or a list of such. */
function plainText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(plainText).join("");
  if (!isObject(value)) return "";
  for (const name of ["text", "content", "thinking", "reasoning", "summary"]) {
    const text = plainText(value[name]);
    if (text !== "") return text;
  }
  return "";
}
