import type { Frame } from "../frames.ts";
import type { StreamView } from "../view.ts";
import { atEnd, atFrame, atLine, notJson, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { chatAndCompletions, everyApi, hasError, openAis } from "./stream-rule.ts";
import { type Rules, type Violation, notShown, on } from "../rule.ts";

/** Rules about the framing of events. Source: the HTML standard, section 9.2; 408 of 408 recorded streams. */
export const framingRules: Rules<StreamView> = on(everyApi, {
  *"sse/json"(view) {
    const objects = new Set(view.chunks.map((chunk) => chunk.frame));
    for (const frame of view.frames) {
      if (frame.data === null || frame.data === "[DONE]" || objects.has(frame)) continue;
      yield frame.data.trim() === "" ? atFrame(frame, "empty data") : inData(frame, notJson(frame.data));
    }
  },
  *"sse/field"(view) {
    for (const frame of view.frames) {
      for (const line of frame.lines) {
        if (!["", "data", "event", "id", "retry"].includes(line.field))
          yield atLine(line, "a line that clients ignore");
      }
    }
  },
  *"sse/one-data-line"(view) {
    for (const frame of view.frames) {
      const data = frame.lines.filter((line) => line.field === "data");
      if (data[1]) yield atLine(data[1], `${data.length} data lines in one event`);
    }
  },
  *"sse/event-name"(view) {
    if (!chatAndCompletions.includes(view.exchange.endpoint)) return notShown;
    for (const frame of view.frames) {
      for (const line of frame.lines) if (line.field === "event") yield atLine(line, `an event named ${line.value}`);
    }
  },
  *"sse/id-retry"(view) {
    if (!openAis.includes(view.exchange.endpoint)) return notShown;
    for (const frame of view.frames) {
      for (const line of frame.lines)
        if (line.field === "id" || line.field === "retry") yield atLine(line, `a ${line.field} line`);
    }
  },
  *"sse/crlf"(view) {
    for (const frame of view.frames) {
      for (const line of frame.lines)
        if (line.terminator.startsWith("\r")) yield atLine(line, "a line that ends with a carriage return");
    }
  },
  *"sse/space"(view) {
    for (const frame of view.frames) {
      for (const line of frame.lines) {
        if (line.field !== "data") continue;
        const space = line.end - line.start - line.value.length - "data:".length;
        if (space !== 1 || line.value.startsWith(" "))
          yield atLine(line, space === 0 ? "no space after data:" : "more than one space after data:");
      }
    }
  },
  *"sse/blank-line"(view) {
    const last = view.frames.at(-1);
    if (last && !last.closed) yield atFrame(last, "the last event without its blank line");
  },
  *"sse/bom"(view) {
    if (view.exchange.response.body.startsWith("\uFEFF")) yield { start: 0, end: 1, found: "a byte order mark" };
  },
  *"sse/compact"(view) {
    if (!openAis.includes(view.exchange.endpoint)) return notShown;
    for (const { frame, value } of view.chunks) {
      // The rule is about white space outside of strings. Numbers may be printed in other ways.
      const bare = frame.data?.replace(/"(?:[^"\\]|\\.)*"?/g, '""') ?? "";
      if (isObject(value) && /\s/.test(bare)) yield atFrame(frame, "white space between JSON tokens");
    }
  },
  *"sse/raw-unicode"(view) {
    for (const { frame } of view.chunks) {
      const escape = /(?<!\\)(?:\\\\)*\\u(?!00[01]|007f|d[89a-f])[0-9a-f]{4}/i.exec(frame.data ?? "");
      if (escape)
        yield {
          start: frame.dataStart + escape.index,
          end: frame.dataStart + escape.index + escape[0].length,
          found: `the escape ${escape[0]}`,
        };
    }
  },
  *"end/done"(view) {
    if (!chatAndCompletions.includes(view.exchange.endpoint)) return notShown;
    if (hasError(view)) return notShown;
    if (view.done < 0) yield atEnd(view.exchange.response.body, "no [DONE]");
  },
  *"end/done-after-error"(view) {
    if (!chatAndCompletions.includes(view.exchange.endpoint)) return notShown;
    if (!hasError(view)) return notShown;
    if (view.done < 0) yield atEnd(view.exchange.response.body, "no [DONE] after an error");
  },
  *"end/done-last"(view) {
    if (!openAis.includes(view.exchange.endpoint)) return notShown;
    if (view.done < 0) return notShown;
    const next = view.frames.slice(view.done + 1).find((frame) => frame.lines.some((line) => line.field !== ""));
    if (next) yield atFrame(next, next.data?.trim() === "[DONE]" ? "a second [DONE]" : "an event after [DONE]");
  },
  *"end/done-exact"(view) {
    if (!openAis.includes(view.exchange.endpoint)) return notShown;
    for (const frame of view.frames) {
      if (frame.data !== null && frame.data !== "[DONE]" && /^\W*\[?done\]?\W*$/i.test(frame.data))
        yield atFrame(frame, JSON.stringify(frame.data));
    }
  },
  *"end/complete"(view) {
    const { body, complete } = view.exchange.response;
    if (!complete) yield atEnd(body, "the connection was cut");
  },
});

/** Rules about the headers of streams. Source: recordings. */
export const streamHeaderRules: Rules<StreamView> = on(everyApi, {
  *"headers/event-stream"(view) {
    if (view.exchange.response.headers === null) return notShown;
    const type = view.exchange.response.headers?.["content-type"];
    if (!/^text\/event-stream\b/.test(type ?? "")) yield { start: 0, end: 0, found: `content-type ${shown(type)}` };
  },
  *"headers/stream-request-id"(view) {
    if (!openAis.includes(view.exchange.endpoint)) return notShown;
    if (view.exchange.response.headers === null) return notShown;
    if (!view.exchange.response.headers?.["x-request-id"]) yield { start: 0, end: 0, found: "no x-request-id" };
  },
  *"headers/stream-length"(view) {
    if (view.exchange.response.headers === null) return notShown;
    const length = view.exchange.response.headers?.["content-length"];
    if (length !== undefined) yield { start: 0, end: 0, found: `content-length ${length}` };
  },
});

/** Returns a problem in a frame's data at its place in the body. */
function inData({ dataStart }: Frame, { start, end, found }: Violation): Violation {
  return { start: dataStart + start, end: dataStart + end, found };
}
