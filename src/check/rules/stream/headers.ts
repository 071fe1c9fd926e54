import { shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";

const openais = ["chat", "completions", "responses"] as const;
/** Every API that streams. */
const all = [...openais, "messages"] as const;

/** Headers of streams. Source: recordings. */
export const headerRules: readonly StreamRule[] = [
  {
    id: "headers/event-stream",
    severity: "error",
    concern: "the stream cannot be read",
    says: "A stream has Content-Type text/event-stream.",
    source: "HTML standard 9.2; recordings since 2023-05",
    breaks: ["AI SDK, fetch-event-source (they refuse the answer)", "EventSource"],
    judges: "stream",
    endpoints: all,
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
    breaks: [],
    judges: "stream",
    endpoints: openais,
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
    judges: "stream",
    endpoints: all,
    shown: (view) => view.exchange.response.headers !== null,
    *judge(view) {
      const length = view.exchange.response.headers?.["content-length"];
      if (length !== undefined) yield { start: 0, end: 0, found: `content-length ${length}` };
    },
  },
];
