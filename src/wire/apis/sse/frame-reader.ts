import type { RepairLog } from "../tolerant/repairs.ts";

/** Receives the frames of a `FrameReader`. */
export interface FrameSink {
  /** Events of this stream have names. Otherwise a name counts as a repair. */
  readonly named?: boolean;

  /**
   * One event. `event`: its name, "" without one. `bare`: the text was not in a `data:` field (a JSON body, an HTML page, a proxy's
   * message).
   */
  frame(data: string, event: string, bare: boolean): void;

  /**
   * Fast path for an event with one line of data, `text` from `start` to `end`, which a blank line follows. May read further such events that
   * directly follow. Returns the end of the last line that it has read; −1 to get the event as a `frame`.
   */
  take?(text: string, start: number, end: number): number;
}

/** A line or an event is longer than the limit. Without a limit it could fill the memory. */
export class FrameTooLongError extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`An event of the stream is longer than ${limit} characters.`);
    this.name = "FrameTooLongError";
    this.limit = limit;
  }
}

/** 16 Mi characters: enough for an event with audio or an image. */
const defaultLimit = 16 * 1024 * 1024;

/**
 * Reads the bytes or text of an event stream, split anywhere, into events. Takes linear time and bounded memory.
 *
 * It follows the HTML standard, "9.2.6 Interpreting an event stream" (https://html.spec.whatwg.org/multipage/server-sent-events.html),
 * and also accepts what servers of OpenAI's dialect send: JSON lines without `data:`, events with no blank line between them, a
 * last event without any line end, `error: {…}` lines, and whole bodies that are no event stream at all.
 */
export class SseFrameReader {
  readonly #sink: FrameSink;
  readonly #repairs: RepairLog;
  readonly #limit: number;
  #decoder: InstanceType<typeof TextDecoder> | undefined;

  /** The current line. V8 stores it as a rope, and joins its chunks once, when the line is complete. */
  #line = "";
  /** The number of characters before the current text. */
  #before = 0;
  /** The last text ended in CR; an LF at the start of the next one belongs to it. */
  #afterCr = false;
  #atStart = true;
  /** The data of the current event; undefined while it has none. */
  #data: string | undefined;
  /** Its last line. Lines are examined instead of `#data`: reading a rope joins it, which would happen for every line. */
  #lastLine = "";
  #opensObject = false;
  #event = "";
  /** Lines outside any field, while they may belong together (a pretty-printed body, a page). */
  #block: string[] | undefined;
  #blockLength = 0;

  constructor(sink: FrameSink, repairs: RepairLog, limit: number = defaultLimit) {
    this.#sink = sink;
    this.#repairs = repairs;
    this.#limit = limit;
  }

  /** Throws `FrameTooLongError`. Text must be split between characters, bytes may be split anywhere. */
  push(input: Uint8Array | string): void {
    if (typeof input === "string") this.#read(input);
    else this.#read((this.#decoder ??= new TextDecoder("utf-8", { ignoreBOM: true })).decode(input, { stream: true }));
  }

  /** Ends the input: the pending event is complete. */
  end(): void {
    const rest = this.#decoder?.decode();
    if (rest) this.#read(rest);
    if (this.#line !== "") {
      const line = this.#line;
      this.#repairs.at = this.#before - line.length;
      this.#line = "";
      this.#readLine(line, 0, line.length);
    }
    this.#endBlock();
    if (this.#data !== undefined) this.#repairs.note("no-blank-line");
    this.#dispatch();
    this.#repairs.at = this.#before;
  }

  #read(text: string): void {
    if (text === "") return;
    let at = 0;
    if (this.#atStart) {
      this.#atStart = false;
      if (text.charCodeAt(0) === 0xfeff) {
        at = 1;
        this.#repairs.note("bom");
      }
    }
    if (this.#afterCr) {
      this.#afterCr = false;
      if (text.charCodeAt(at) === lf) at++;
    }
    // Each is searched again only when it is behind: a text of CRs alone has no LF, and would be searched to its end for each of them.
    let cr = text.indexOf("\r", at);
    let newline = text.indexOf("\n", at);
    for (;;) {
      if (cr !== -1 && cr < at) cr = text.indexOf("\r", at);
      if (newline !== -1 && newline < at) newline = text.indexOf("\n", at);
      const endsInCr = cr !== -1 && (newline === -1 || cr < newline);
      const end = endsInCr ? cr : newline;
      let next = end + 1;
      // A blank line belongs to the frame that it ends.
      if (this.#repairs.keepsPlaces && (end > at || this.#line !== ""))
        this.#repairs.at = this.#before + at - this.#line.length;
      if (endsInCr) {
        if (next === text.length) this.#afterCr = true;
        else if (text.charCodeAt(next) === lf) next++;
        this.#repairs.note("line-ends");
      }
      if (end === -1) break;
      const isLast = isLineEnd(text.charCodeAt(next));
      if (this.#line === "") {
        const last = this.#readLine(text, at, end, isLast);
        at = last === end ? next : last + 1;
      } else {
        const line = this.#line + text.slice(at, end);
        this.#line = "";
        this.#readLine(line, 0, line.length, isLast);
        at = next;
      }
    }
    if (at < text.length) {
      if (this.#line.length + text.length - at > this.#limit) throw new FrameTooLongError(this.#limit);
      this.#line += text.slice(at);
    }
    this.#before += text.length;
  }

  /**
   * Reads one line, `text` from `start` to `end`, without its line end. `isLast`: a blank line follows, so that no further line can add data
   * or a name to the event. False if that is not known yet. Returns the end of the last line that was read: `end`, or that of a later event
   * that the sink has taken, too.
   */
  #readLine(text: string, start: number, end: number, isLast = false): number {
    if (start === end) {
      if (this.#block !== undefined) this.#addToBlock("");
      else {
        this.#dispatch();
        // According to the standard, a name without data ends with its event: it does not name the next one.
        this.#event = "";
      }
    } else if (text.startsWith("data:", start)) {
      if (this.#block !== undefined) this.#endBlock();
      let value = start + 5;
      if (text.charCodeAt(value) === space) value++;
      else if (value < end) this.#repairs.note("no-space");
      const isWhole = isLast && this.#data === undefined && this.#event === "";
      const taken = isWhole ? (this.#sink.take?.(text, value, end) ?? -1) : -1;
      if (taken !== -1) return taken;
      this.#addData(text.slice(value, end));
    } else this.#readOtherLine(text.slice(start, end));
    return end;
  }

  #addData(value: string): void {
    if (this.#data === undefined) return this.#beginData(value);
    // According to the standard, a second data line continues the event. Here a new object after a complete one is a new event.
    if ((value.startsWith("{") || value.startsWith("[DONE]")) && this.#looksComplete()) {
      this.#repairs.note("no-blank-line");
      this.#dispatch();
      return this.#beginData(value);
    }
    if (this.#data.length + value.length >= this.#limit) throw new FrameTooLongError(this.#limit);
    this.#data += `\n${value}`;
    this.#lastLine = value;
  }

  #beginData(value: string): void {
    this.#data = value;
    this.#lastLine = value;
    this.#opensObject = value.startsWith("{");
  }

  #looksComplete(): boolean {
    return (this.#opensObject && this.#lastLine.endsWith("}")) || this.#lastLine.trim() === "[DONE]";
  }

  #readOtherLine(line: string): void {
    if (this.#block !== undefined && !line.startsWith("event:")) {
      this.#addToBlock(line);
      if (line === "}" || line === "]") this.#endBlock();
      return;
    }
    this.#endBlock();
    if (line.startsWith(":")) {
      this.#repairs.note("comment");
      return;
    }
    if (line === "data") {
      this.#addData("");
      return;
    }
    const [, name, value = ""] = /^([A-Za-z_-]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "event") {
      this.#event = value;
      if (this.#sink.named !== true) this.#repairs.note("event-name");
    } else if (name === "id" || name === "retry") {
      this.#repairs.note("unknown-field");
    } else if (name === "error" && value.startsWith("{")) {
      this.#dispatch();
      this.#sink.frame(value, "error", false);
    } else if (name !== undefined && line.includes(":") && !value.includes(" ")) {
      this.#repairs.note("unknown-field");
    } else if (/^\s*data:/.test(line)) {
      this.#repairs.note("unknown-field");
      const trimmed = line.trimStart();
      this.#readLine(trimmed, 0, trimmed.length);
    } else {
      // A name before it, without data, is its name.
      if (this.#data !== undefined) this.#dispatch();
      this.#addToBlock(line);
      if (isWhole(line.trim())) this.#endBlock();
    }
  }

  #addToBlock(line: string): void {
    this.#blockLength += line.length + 1;
    if (this.#blockLength > this.#limit) throw new FrameTooLongError(this.#limit);
    (this.#block ??= []).push(line);
  }

  #endBlock(): void {
    if (this.#block === undefined) return;
    const text = this.#block.join("\n").trim();
    this.#block = undefined;
    this.#blockLength = 0;
    const event = this.#event;
    this.#event = "";
    if (text !== "") this.#sink.frame(text, event, true);
  }

  #dispatch(): void {
    const data = this.#data;
    const event = this.#event;
    if (data === undefined && event !== "error") return;
    this.#data = undefined;
    this.#event = "";
    this.#sink.frame(data ?? "", event, false);
  }
}

const lf = 10;
const carriageReturn = 13;
const space = 32;

function isLineEnd(code: number): boolean {
  return code === lf || code === carriageReturn;
}

function isWhole(line: string): boolean {
  return (line.startsWith("{") && line.endsWith("}")) || line === "[DONE]";
}
