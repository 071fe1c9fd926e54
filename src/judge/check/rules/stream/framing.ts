import type { Frame } from "../frames.ts";
import { atEnd, atFrame, atLine, notJson, shown } from "../place.ts";
import type { StreamRule, Violation } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { chatAndCompletions, everyApi, hasError, openAis, streamRulesOf } from "./stream-rule.ts";

const unreadable = "the stream cannot be read";

/** Rules about the framing of events. Source: the HTML standard, section 9.2; 408 of 408 recorded streams. */
export const framingRules: readonly StreamRule[] = streamRulesOf(everyApi, [
  {
    id: "sse/json",
    severity: "error",
    concern: unreadable,
    says: "The data of every event is one JSON object, without NaN and Infinity, or [DONE].",
    source: "specification; RFC 8259 section 6 (NaN and Infinity are not JSON); recordings 408 of 408",
    breaks: ["official SDKs", "AI SDK", "LangChain"],
    *judge(view) {
      const objects = new Set(view.chunks.map((chunk) => chunk.frame));
      for (const frame of view.frames) {
        if (frame.data === null || frame.data === "[DONE]" || objects.has(frame)) continue;
        yield frame.data.trim() === "" ? atFrame(frame, "empty data") : inData(frame, notJson(frame.data));
      }
    },
  },
  {
    id: "sse/field",
    severity: "error",
    concern: unreadable,
    says: "Every line is a field of Server-Sent Events: data, event, id, retry, or a comment.",
    source: "HTML standard 9.2.6; gpustack #6155 (JSON lines without `data:`)",
    breaks: ["official SDKs", "AI SDK", "LangChain"],
    *judge(view) {
      for (const frame of view.frames) {
        for (const line of frame.lines) {
          if (!["", "data", "event", "id", "retry"].includes(line.field))
            yield atLine(line, "a line that clients ignore");
        }
      }
    },
  },
  {
    id: "sse/one-data-line",
    severity: "warning",
    concern: unreadable,
    says: "An event has one data line.",
    source: "recordings 408 of 408",
    breaks: ["org-ai", "clients that read line by line"],
    *judge(view) {
      for (const frame of view.frames) {
        const data = frame.lines.filter((line) => line.field === "data");
        if (data[1]) yield atLine(data[1], `${data.length} data lines in one event`);
      }
    },
  },
  {
    id: "sse/event-name",
    severity: "warning",
    concern: unreadable,
    says: "Events have no name: no `event:` line.",
    source: "recordings 408 of 408; LocalAI",
    breaks: ["org-ai", "Witsy", "EventSource-based clients (they wait for unnamed messages)"],
    endpoints: chatAndCompletions,
    *judge(view) {
      for (const frame of view.frames) {
        for (const line of frame.lines) if (line.field === "event") yield atLine(line, `an event named ${line.value}`);
      }
    },
  },
  {
    id: "sse/id-retry",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Events carry no `id:` and no `retry:` lines.",
    source: "recordings 408 of 408",
    endpoints: openAis,
    *judge(view) {
      for (const frame of view.frames) {
        for (const line of frame.lines)
          if (line.field === "id" || line.field === "retry") yield atLine(line, `a ${line.field} line`);
      }
    },
  },
  {
    id: "sse/crlf",
    severity: "warning",
    concern: unreadable,
    says: "Lines end with a line feed alone.",
    source: "recordings: 0 carriage returns in 408 streams",
    breaks: ["clients that split at \\n\\n"],
    *judge(view) {
      for (const frame of view.frames) {
        for (const line of frame.lines)
          if (line.terminator.startsWith("\r")) yield atLine(line, "a line that ends with a carriage return");
      }
    },
  },
  {
    id: "sse/space",
    severity: "warning",
    concern: unreadable,
    says: "`data:` is followed by one space.",
    source: "recordings 408 of 408",
    breaks: ["clients that cut off six characters"],
    *judge(view) {
      for (const frame of view.frames) {
        for (const line of frame.lines) {
          if (line.field !== "data") continue;
          const space = line.end - line.start - line.value.length - "data:".length;
          if (space !== 1 || line.value.startsWith(" "))
            yield atLine(line, space === 0 ? "no space after data:" : "more than one space after data:");
        }
      }
    },
  },
  {
    id: "sse/blank-line",
    severity: "warning",
    concern: unreadable,
    says: "A blank line ends every event, the last included.",
    source: "HTML standard 9.2.6 (an unfinished event is dropped); MLX-Textgen",
    breaks: ["EventSource-based clients (they lose the last event)"],
    *judge(view) {
      const last = view.frames.at(-1);
      if (last && !last.closed) yield atFrame(last, "the last event without its blank line");
    },
  },
  {
    id: "sse/bom",
    severity: "warning",
    concern: unreadable,
    says: "The stream begins without a byte order mark.",
    source: "recordings 408 of 408",
    breaks: ["clients that look for `data:` at the start of a line"],
    *judge(view) {
      if (view.exchange.response.body.startsWith("\uFEFF")) yield { start: 0, end: 1, found: "a byte order mark" };
    },
  },
  {
    id: "sse/compact",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Chunks are compact JSON without white space between the tokens.",
    source: "recordings 408 of 408",
    endpoints: openAis,
    *judge(view) {
      for (const { frame, value } of view.chunks) {
        // The rule is about white space outside of strings. Numbers may be printed in other ways.
        const bare = frame.data?.replace(/"(?:[^"\\]|\\.)*"?/g, '""') ?? "";
        if (isObject(value) && /\s/.test(bare)) yield atFrame(frame, "white space between JSON tokens");
      }
    },
  },
  {
    id: "sse/raw-unicode",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Characters beyond ASCII are sent as UTF-8, not escaped.",
    source: "recordings: no \\uXXXX of a printable character in any stream",
    *judge(view) {
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
  },
  {
    id: "end/done",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "The stream ends with data: [DONE].",
    source: "specification; recordings 409 of 409; missing in ogx",
    breaks: ["org-ai", "LangChain", "clients that wait for it"],
    endpoints: chatAndCompletions,
    shown: (view) => !hasError(view),
    *judge(view) {
      if (view.done < 0) yield atEnd(view.exchange.response.body, "no [DONE]");
    },
  },
  {
    id: "end/done-after-error",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "A stream that failed also ends with data: [DONE].",
    source: "specification (every stream is terminated by it); missing in tabbyAPI",
    breaks: ["org-ai", "LangChain", "clients that wait for it"],
    endpoints: chatAndCompletions,
    shown: hasError,
    *judge(view) {
      if (view.done < 0) yield atEnd(view.exchange.response.body, "no [DONE] after an error");
    },
  },
  {
    id: "end/done-last",
    severity: "warning",
    concern: "the answer seems to end wrongly",
    says: "Nothing follows [DONE].",
    source: "recordings 409 of 409",
    breaks: ["clients that close at [DONE] (they lose what follows)"],
    endpoints: openAis,
    shown: (view) => view.done >= 0,
    *judge(view) {
      const next = view.frames.slice(view.done + 1).find((frame) => frame.lines.some((line) => line.field !== ""));
      if (next) yield atFrame(next, next.data?.trim() === "[DONE]" ? "a second [DONE]" : "an event after [DONE]");
    },
  },
  {
    id: "end/done-exact",
    severity: "warning",
    concern: "the answer seems to end wrongly",
    says: "The data of the last event is exactly [DONE], without white space or quotes.",
    source: "recordings 409 of 409",
    breaks: ["clients that compare the whole line"],
    endpoints: openAis,
    *judge(view) {
      for (const frame of view.frames) {
        if (frame.data !== null && frame.data !== "[DONE]" && /^\W*\[?done\]?\W*$/i.test(frame.data))
          yield atFrame(frame, JSON.stringify(frame.data));
      }
    },
  },
  {
    id: "end/complete",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "The connection ends as HTTP requires; it is not cut.",
    source: "RFC 9112 section 7.1 (the last chunk of a chunked body)",
    breaks: ["undici, Python httpx and curl report a network error after a good answer"],
    *judge(view) {
      const { body, complete } = view.exchange.response;
      if (!complete) yield atEnd(body, "the connection was cut");
    },
  },
]);

/** Rules about the headers of streams. Source: recordings. */
export const streamHeaderRules: readonly StreamRule[] = streamRulesOf(everyApi, [
  {
    id: "headers/event-stream",
    severity: "error",
    concern: "the stream cannot be read",
    says: "A stream has Content-Type text/event-stream.",
    source: "HTML standard 9.2; recordings since 2023-05",
    breaks: ["AI SDK, fetch-event-source (they refuse the answer)", "EventSource"],
    shown: (view) => view.exchange.response.headers !== null,
    *judge(view) {
      const type = view.exchange.response.headers?.["content-type"];
      if (!/^text\/event-stream\b/.test(type ?? "")) yield { start: 0, end: 0, found: `content-type ${shown(type)}` };
    },
  },
  {
    id: "headers/stream-request-id",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Every stream has an x-request-id.",
    source: "recordings 289 of 289",
    endpoints: openAis,
    shown: (view) => view.exchange.response.headers !== null,
    *judge(view) {
      if (!view.exchange.response.headers?.["x-request-id"]) yield { start: 0, end: 0, found: "no x-request-id" };
    },
  },
  {
    id: "headers/stream-length",
    severity: "error",
    concern: "the stream cannot be read",
    says: "A stream has no Content-Length, because it is sent while it is generated.",
    source: "recordings 378 of 378 (transfer-encoding: chunked)",
    breaks: ["users (they wait for the whole answer)"],
    shown: (view) => view.exchange.response.headers !== null,
    *judge(view) {
      const length = view.exchange.response.headers?.["content-length"];
      if (length !== undefined) yield { start: 0, end: 0, found: `content-length ${length}` };
    },
  },
]);

/** Returns a problem in a frame's data at its place in the body. */
function inData({ dataStart }: Frame, { start, end, found }: Violation): Violation {
  return { start: dataStart + start, end: dataStart + end, found };
}
