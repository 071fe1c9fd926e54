import { isJsonText } from "../../core/json.ts";

/** A part of what `JsonFence` returns: the text of the answer, or reasoning that preceded it. */
export interface FencePart {
  readonly type: "text" | "reasoning";
  readonly text: string;
}

/**
 * Takes the JSON out of a Markdown fence, for an answer that must be JSON: models write "```json", and clients parse the whole text. White
 * space, a byte order mark and `<think>` reasoning may precede the fence. The mark is also removed where there is no fence. Text after the
 * fence is dropped.
 *
 * The text may come in chunks of any size, which do not change the result. Only what may be part of a fence is held back, at most `maxHeld`
 * characters. A fence inside of the JSON does not end it: the closing fence is where a value is complete, or at the end of the text.
 * Source: https://spec.commonmark.org/0.31.2/#fenced-code-blocks. Models also write the JSON on the line of the opening fence.
 */
export class JsonFence {
  #phase: "start" | "reasoning" | "plain" | "inside" | "after" = "start";
  /** Text that may be a part of a fence or a tag. */
  #held = "";
  /** In phase `start`: what `#held` is so far. */
  #opening: "space" | "ticks" | "info" | "tag" = "space";
  /** The number of backticks of the opening fence. */
  #opened = 0;
  /** The same of the last run of backticks: in `#held`, or after the fence. */
  #ticks = 0;
  /** White space has followed this run. */
  #isRunOver = false;
  readonly #value = new JsonScanner();
  #hasRemoved = false;
  #hasTextAfter = false;
  #hasFurtherFence = false;

  /** A fence, reasoning or a byte order mark was removed. */
  get hasRemoved(): boolean {
    return this.#hasRemoved;
  }

  /** Text is held back. */
  get isHolding(): boolean {
    return this.#held !== "";
  }

  /** There is more than one JSON value with its fence, or something else. Known at the end of the text. */
  get hasOtherText(): boolean {
    return this.#hasTextAfter || this.#value.isOther;
  }

  /** After the fence there is another one. */
  get hasFurtherFence(): boolean {
    return this.#hasFurtherFence;
  }

  push(text: string): FencePart[] {
    const out: FencePart[] = [];
    /** The start of the characters that are neither sent nor held nor dropped. */
    let from = 0;
    const send = (type: FencePart["type"], more: string): void => {
      if (more !== "") out.push({ type, text: more });
    };
    const release = (type: FencePart["type"]): void => {
      send(type, this.#held);
      this.#held = "";
    };
    /** Holds a character back, after sending those before it. */
    const hold = (type: FencePart["type"], at: number): void => {
      send(type, text.slice(from, at));
      this.#held += text.charAt(at);
      from = at + 1;
    };
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.#phase === "start") {
        const next = this.#atStart(code);
        if (next === "hold") hold("text", at);
        else {
          if (next === "plain") {
            this.#readHeld();
            release("text");
          }
          this.#held = "";
          // What begins the JSON is a part of it; a line feed, a tag and a mark are not.
          from = next === "plain" || next === "json" ? at : at + 1;
          if (next !== "drop") this.#phase = next === "json" ? "inside" : next;
          if (next !== "plain") this.#hasRemoved = true;
          if (from === at) this.#value.read(code);
        }
      } else if (this.#phase === "reasoning") {
        if (code === closeTag.charCodeAt(this.#held.length)) hold("reasoning", at);
        else if (this.#held !== "") {
          release("reasoning");
          if (code === lessThan) hold("reasoning", at);
        }
        if (this.#held === closeTag) {
          this.#held = "";
          this.#phase = "start";
          this.#opening = "space";
        }
      } else if (this.#phase === "plain") this.#value.read(code);
      else if (this.#phase === "inside") {
        if (this.#held !== "" && this.#continuesTail(code)) {
          hold("text", at);
          continue;
        }
        if (this.#held !== "" && this.#ticks >= this.#opened && this.#value.isTop) {
          this.#held = "";
          this.#ticks = 0;
          this.#phase = "after";
          this.#readAfter(code);
          continue;
        }
        release("text");
        this.#ticks = code === backtick ? 1 : 0;
        this.#isRunOver = false;
        if (this.#beginsTail(code)) hold("text", at);
        else this.#value.read(code);
      } else this.#readAfter(code);
    }
    if (this.#phase !== "after") send(this.#phase === "reasoning" ? "reasoning" : "text", text.slice(from));
    return out;
  }

  /** Ends the text. Returns what was held back and is no fence. */
  end(): FencePart[] {
    const isFence = this.#phase === "inside" && (this.#ticks >= this.#opened || (this.#ticks > 0 && this.#value.isTop));
    if (!isFence && this.#phase !== "reasoning") this.#readHeld();
    this.#value.end();
    const held = this.#held;
    this.#held = "";
    if (this.#phase === "start") this.#phase = "plain";
    if (held === "" || isFence) return [];
    return [{ type: this.#phase === "reasoning" ? "reasoning" : "text", text: held }];
  }

  #readHeld(): void {
    for (let at = 0; at < this.#held.length; at++) this.#value.read(this.#held.charCodeAt(at));
  }

  /** What a character before the JSON means. */
  #atStart(code: number): "hold" | "drop" | "plain" | "reasoning" | "inside" | "json" {
    if (this.#held.length >= maxHeld) return "plain";
    switch (this.#opening) {
      case "space":
        if (code === byteOrderMark) return this.#held === "" ? "drop" : "plain";
        if (isSpace(code)) return "hold";
        this.#opened = 1;
        this.#opening = code === backtick ? "ticks" : "tag";
        return code === backtick || code === lessThan ? "hold" : "plain";
      case "ticks":
        if (code === backtick) {
          this.#opened++;
          return "hold";
        }
        if (this.#opened < minTicks) return "plain";
        this.#opening = "info";
        return this.#atInfo(code);
      case "info":
        return this.#atInfo(code);
      case "tag": {
        const read = this.#opened++;
        if (code !== openTag.charCodeAt(read)) return "plain";
        return read + 1 === openTag.length ? "reasoning" : "hold";
      }
    }
  }

  /** What a character after the backticks of the opening fence means: it belongs to the language, or to the JSON. */
  #atInfo(code: number): "hold" | "plain" | "inside" | "json" {
    if (code === lineFeed) return "inside";
    if (code === openBrace || code === openBracket || code === quote) return "json";
    return code === backtick ? "plain" : "hold";
  }

  /** Whether the closing fence may begin with this character: white space before it counts. */
  #beginsTail(code: number): boolean {
    return this.#value.isTop ? code === backtick || isSpace(code) : code === lineFeed;
  }

  #continuesTail(code: number): boolean {
    if (this.#held.length >= maxHeld) return false;
    if (isSpace(code)) {
      this.#isRunOver = this.#ticks > 0;
      return true;
    }
    if (code !== backtick || this.#isRunOver) return false;
    this.#ticks++;
    return true;
  }

  #readAfter(code: number): void {
    this.#ticks = code === backtick ? this.#ticks + 1 : 0;
    this.#hasFurtherFence ||= this.#ticks >= minTicks;
    this.#hasTextAfter ||= !isSpace(code);
  }
}

/** In characters. White space or a language that is longer belongs to no fence. */
const maxHeld = 1024;
const minTicks = 3;
const openTag = "<think>";
const closeTag = "</think>";

/** Follows a JSON text by its brackets and strings, character by character. */
class JsonScanner {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** A value without brackets and quotes, such as a number. */
  #scalar = "";
  #hasValue = false;
  #isOther = false;

  /** No object, array or string is open. */
  get isTop(): boolean {
    return this.#depth === 0 && !this.#inString;
  }

  /** The text is not one JSON value. Not every mistake inside of a value is noticed. */
  get isOther(): boolean {
    return this.#isOther;
  }

  read(code: number): void {
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === backslash) this.#isEscaped = true;
      else if (code === quote) this.#inString = false;
      return;
    }
    if (isSpace(code)) {
      if (this.#depth === 0) this.end();
      return;
    }
    if (this.#depth === 0) this.#atTop(code);
    if (code === quote) this.#inString = true;
    else if (code === openBrace || code === openBracket) this.#depth++;
    else if ((code === closeBrace || code === closeBracket) && this.#depth > 0) this.#depth--;
  }

  end(): void {
    if (this.#scalar === "") return;
    this.#isOther ||= !isJsonText(this.#scalar);
    this.#hasValue = true;
    this.#scalar = "";
  }

  #atTop(code: number): void {
    if (this.#hasValue) this.#isOther = true;
    else if (code === quote || code === openBrace || code === openBracket) {
      this.#isOther ||= this.#scalar !== "";
      this.#hasValue = true;
    } else if (this.#scalar.length < maxScalar) this.#scalar += String.fromCharCode(code);
    else this.#isOther = true;
  }
}

/** In characters. */
const maxScalar = 64;

/** The JSON of an answer that must be JSON. */
interface FoundJson {
  readonly text: string;
  /** What preceded the text in a `<think>` tag. */
  readonly reasoning: string;
  /** A fence, reasoning or a byte order mark was removed. */
  readonly hasRemoved: boolean;
  /** There was text beside the JSON. If `text` is JSON, it was removed. */
  readonly hasOtherText: boolean;
  /** `text` is JSON. */
  readonly isJson: boolean;
}

/**
 * Finds the JSON in a text that must be JSON and is known to its end: the text itself, the content of the fence that it is, or the content of
 * the only fence in other text.
 */
export function jsonOf(text: string): FoundJson {
  const whole = unfenced(text);
  const at = text.indexOf("```");
  if (whole.isJson || at === -1) return whole;
  const inner = unfenced(text.slice(at));
  return inner.isJson ? { ...inner, hasOtherText: true } : whole;
}

function unfenced(text: string): FoundJson {
  const fence = new JsonFence();
  const parts = [...fence.push(text), ...fence.end()];
  const joined = (type: FencePart["type"]): string =>
    parts.flatMap((part) => (part.type === type ? [part.text] : [])).join("");
  const { hasRemoved, hasOtherText, hasFurtherFence } = fence;
  const inner = joined("text");
  // Any of several fences may be the answer.
  if (hasFurtherFence) return { text, reasoning: "", hasRemoved: false, hasOtherText: true, isJson: false };
  return { text: inner, reasoning: joined("reasoning"), hasRemoved, hasOtherText, isJson: isJsonText(inner) };
}

function isSpace(code: number): boolean {
  return code === lineFeed || code === 0x20 || code === 0x0d || code === 0x09;
}

const lineFeed = 0x0a;
const quote = 0x22;
const lessThan = 0x3c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const backtick = 0x60;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const byteOrderMark = 0xfeff;
