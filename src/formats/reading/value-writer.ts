import { escapeCharacters } from "./argument-sink.ts";
import type { ArgumentSink } from "./argument-sink.ts";
import { JsonScan } from "./json-scan.ts";
import { Pile } from "./pile.ts";
import { typedValue } from "./tool-types.ts";
import type { DeclaredTypes } from "./tool-types.ts";

/** "string": it is one; "value": anything but; "typed": the declared types and the text decide. */
export type ValueKind = "string" | "value" | "typed";

/**
 * Writes the value of one tagged parameter as JSON while it comes. A string streams; a value whose type is open is held back until it
 * can only be a string, or until it is complete.
 */
export class ValueWriter {
  readonly #sink: ArgumentSink;
  readonly #lead: string;
  readonly #declared: DeclaredTypes | undefined;
  /** One newline is taken off each end of a string. */
  readonly #newlines: boolean;
  /** What came while it may be something else than a string. */
  #held: Pile | null;
  /** Where no type is declared: follows the text as JSON. As soon as it is not JSON, it is a string. */
  #scan: JsonScan | null = null;
  #begun = false;
  /** A newline at the end so far, which is no part of a string if nothing follows. */
  #newline = "";

  /** `lead`: JSON that stands before the value. */
  constructor(
    sink: ArgumentSink,
    lead: string,
    kind: ValueKind,
    declared: DeclaredTypes | undefined,
    newlines: boolean,
  ) {
    this.#sink = sink;
    this.#lead = lead;
    this.#newlines = newlines;
    this.#declared = kind === "value" ? { types: new Set(), schema: true } : declared;
    const text = kind === "string" || (this.#declared?.types.size === 1 && this.#declared.types.has("string"));
    this.#held = text ? null : new Pile();
    if (!text && this.#declared === undefined) this.#scan = new JsonScan();
  }

  /** Nothing but white space has come. */
  get empty(): boolean {
    return !this.#begun && (this.#held === null || this.#held.toString().trim() === "");
  }

  /** A further piece of the value, as it was taken from the text. */
  push(raw: string): void {
    if (raw === "") return;
    if (this.#held === null) return this.#sink.write(this.#string(raw), raw);
    this.#held.add(raw);
    if (this.#scan === null || this.#mayBeValue(this.#scan, raw)) return this.#sink.write("", raw);
    const text = this.#held.take();
    this.#held = null;
    this.#sink.write(this.#string(text), raw);
  }

  #mayBeValue(scan: JsonScan, piece: string): boolean {
    let at = 0;
    if (scan.state !== "done") at = scan.scan(piece, 0);
    if (scan.state === "more") return !scan.isString;
    return scan.state === "done" && !scan.isString && piece.slice(at).trim() === "";
  }

  #string(piece: string): string {
    let text = this.#newline + piece;
    let json = "";
    if (!this.#begun) {
      this.#begun = true;
      json = `${this.#lead}"`;
      if (this.#newlines && text.startsWith("\n")) text = text.slice(1);
    }
    this.#newline = "";
    if (this.#newlines && text.endsWith("\n")) {
      this.#newline = "\n";
      text = text.slice(0, -1);
    }
    return json + escapeCharacters(text);
  }

  /** The value is complete. Gives the JSON that is still due. */
  end(): string {
    if (this.#held === null) return this.#begun ? '"' : `${this.#lead}""`;
    let text = this.#held.take();
    if (this.#newlines) text = text.replace(/^\n/, "").replace(/\n$/, "");
    return this.#lead + typedValue(text, this.#declared);
  }
}
