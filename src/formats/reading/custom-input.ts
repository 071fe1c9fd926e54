import { customInput } from "../../core/custom-tool.ts";
import { isSpace } from "./cursor.ts";
import { JsonStringDecoder } from "./json-scan.ts";

/** What stands before the text: a model that begins otherwise has not understood, and its arguments are the input as they are. */
const expected = ["{", `"${customInput}"`, ":"] as const;
const noMembers = /^\s*\{\s*\}\s*$/;
/** White space before the text beyond this is no beginning of it any more; it bounds what is held back. */
const longestLead = 200;

/**
 * The input of a custom tool's call, out of the arguments that the model wrote for it: `{"input": "…"}`, piece by piece; or a string
 * alone. Anything else is the input itself, as JSON, so that nothing that a model says is lost.
 */
export class CustomInput {
  readonly #string = new JsonStringDecoder();
  #state: "lead" | "string" | "json" | "done" = "lead";
  /** The arguments so far, while it is open what they are. */
  #held = "";

  /** A further piece of the arguments' JSON. Gives what it adds to the input. */
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
    const at = textBegins(text);
    if (at === "later" && text.length <= longestLead) {
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
    // Other members are not the input.
    if (this.#string.closed) this.#state = "done";
    return text;
  }

  /** The arguments are complete, or will not be. Gives what of the input is still due. */
  end(): string {
    const rest = this.#state === "lead" && !noMembers.test(this.#held) ? this.#held : "";
    this.#held = "";
    return rest + this.#string.end();
  }
}

/** The place behind the quote with which the text begins; "later": it has not come yet; "never": these are other arguments. */
function textBegins(json: string): number | "later" | "never" {
  let at = passSpace(json, 0);
  if (json[at] === '"') return at + 1;
  if (noMembers.test(json)) return "later";
  for (const part of expected) {
    const here = json.slice(at, at + part.length);
    if (here !== part) return part.startsWith(here) && at + here.length === json.length ? "later" : "never";
    at = passSpace(json, at + part.length);
  }
  if (at === json.length) return "later";
  return json[at] === '"' ? at + 1 : "never";
}

function passSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  return at;
}
