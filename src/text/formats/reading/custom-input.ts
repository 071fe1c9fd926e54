import { customInput } from "../../../wire/core/custom-tool.ts";
import { isSpace } from "./cursor.ts";
import { JsonStringDecoder } from "./json-scan.ts";

/** What precedes the text. If the arguments begin otherwise, they are the input unchanged. */
const expected = ["{", `"${customInput}"`, ":"] as const;
const noMembers = /^\s*\{\s*\}\s*$/;
/** Maximum length of what precedes the text: bounds what is held back. */
const maxLeadLength = 200;

/**
 * Extracts the input of a custom tool's call from the arguments that the model wrote for it, as they arrive: `{"input": "…"}`, or a string.
 * Any other arguments are the input themselves, as JSON, so that no output of the model is lost.
 */
export class CustomInput {
  readonly #string = new JsonStringDecoder();
  #state: "lead" | "string" | "json" | "done" = "lead";
  /** The arguments so far, until their kind is known. */
  #held = "";

  /** Reads the next part of the arguments' JSON. Returns the input text that it adds. */
  push(json: string): string {
    switch (this.#state) {
      case "done":
        return "";
      case "json":
        return json;
      case "string":
        return this.#read(json, 0);
      case "lead":
        return this.#lead(this.#held + json);
    }
  }

  #lead(text: string): string {
    const at = startOfText(text);
    if (at === "later" && text.length <= maxLeadLength) {
      this.#held = text;
      return "";
    }
    this.#held = "";
    if (typeof at === "number") {
      this.#state = "string";
      return this.#read(text, at);
    }
    this.#state = "json";
    return text;
  }

  #read(json: string, from: number): string {
    const text = this.#string.read(json, from);
    // Further members are ignored.
    if (this.#string.closed) this.#state = "done";
    return text;
  }

  /** No more arguments will arrive. Returns the rest of the input. */
  end(): string {
    const rest = this.#state === "lead" && !noMembers.test(this.#held) ? this.#held : "";
    this.#held = "";
    return rest + this.#string.end();
  }
}

/** The position after the opening quote of the text; "later" if it has not arrived yet; "never" if the arguments have another form. */
function startOfText(json: string): number | "later" | "never" {
  let at = skipSpace(json, 0);
  if (json[at] === '"') return at + 1;
  if (noMembers.test(json)) return "later";
  for (const part of expected) {
    const here = json.slice(at, at + part.length);
    if (here !== part) return part.startsWith(here) && at + here.length === json.length ? "later" : "never";
    at = skipSpace(json, at + part.length);
  }
  if (at === json.length) return "later";
  return json[at] === '"' ? at + 1 : "never";
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  return at;
}
