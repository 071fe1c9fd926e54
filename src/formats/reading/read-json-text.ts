import type { Cursor, Reading } from "./cursor.ts";
import { escapeCharacters } from "./argument-sink.ts";
import type { CallAtHand } from "./desk.ts";
import { JsonStringDecoder } from "./json-string-decoder.ts";
import { JsonScan } from "./json-scan.ts";
import { Pile } from "./pile.ts";

/**
 * Streams arguments that are written as a JSON string. If the string holds a JSON object, that object is the arguments; an empty one
 * means none; any other string is kept. The cursor stands at the quote. Gives whether it was complete and right.
 */
export function* streamJsonText(cursor: Cursor, call: CallAtHand): Reading<boolean> {
  const inner = new InnerText(call);
  const string = new JsonStringDecoder();
  cursor.pos++;
  yield* cursor.repeat(() => {
    const decoded = string.read(cursor.text, cursor.pos);
    cursor.pos = string.pos;
    return inner.push(decoded) && !string.closed;
  });
  inner.push(string.end());
  return inner.end(string.closed);
}

/** The arguments of a JSON value that was read whole. */
export function innerObject(json: string): string {
  if (!json.startsWith('"')) return json;
  const value: unknown = JSON.parse(json);
  const text = String(value);
  if (text.trim() === "") return "{}";
  const scan = new JsonScan();
  return text.trimStart().startsWith("{") && scan.scan(text, 0) === text.length && scan.complete ? text : json;
}

/** What a string says, piece by piece: decided by its first character. */
class InnerText {
  readonly #call: CallAtHand;
  readonly #scan = new JsonScan();
  readonly #lead = new Pile();
  #kind: "open" | "object" | "string" = "open";
  #bad = false;

  constructor(call: CallAtHand) {
    this.#call = call;
  }

  /** Gives whether it can go on. */
  push(text: string): boolean {
    if (this.#kind === "open") {
      const first = text.trimStart()[0];
      if (first === undefined) return true;
      this.#kind = first === "{" ? "object" : "string";
      if (this.#kind === "string") this.#call.json('"');
    }
    if (this.#kind === "string") this.#call.json(escapeCharacters(text));
    else this.#object(text);
    return !this.#bad;
  }

  #object(text: string): void {
    for (let at = 0; at < text.length && !this.#bad;) {
      if (this.#scan.state === "done") {
        this.#bad = text.slice(at).trim() !== "";
        return;
      }
      const to = this.#scan.scan(text, at);
      this.#send(text.slice(at, to));
      at = to;
      if (this.#scan.state === "control") {
        this.#send(escapeCharacters(text[at] ?? ""));
        at++;
      } else if (this.#scan.state === "bad") this.#bad = true;
    }
  }

  #send(json: string): void {
    if (this.#call.announced) return this.#call.json(json);
    this.#lead.add(json);
    if (this.#scan.certain) this.#call.json(this.#lead.take());
  }

  end(closed: boolean): boolean {
    if (this.#kind === "object") return closed && !this.#bad && this.#scan.complete;
    if (!closed) return false;
    this.#call.json(this.#kind === "string" ? '"' : "{}");
    return true;
  }
}
