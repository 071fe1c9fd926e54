import { errorObjectViolation } from "../violations.ts";
import { vendorOf } from "../exchange.ts";
import { atName, notJson, objectOf, shown } from "../place.ts";
import type { BodyRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView } from "../view.ts";

const isFailure = (view: BodyView) => view.exchange.response.status >= 400;

const failureRule = { severity: "error", concern: "errors look like answers", judges: "body" } as const;

/** Rules about errors. Source: specification, `Error` and `ErrorResponse`; recorded errors. */
export const failureRules: readonly BodyRule[] = [
  {
    ...failureRule,
    id: "failure/json",
    says: "The body of an error is JSON, not an HTML page, plain text or empty.",
    source: "specification: ErrorResponse; HTML pages of proxies, plain text of frameworks",
    breaks: ["official SDKs (an exception without a message)", "clients that read error.message"],
    shown: isFailure,
    *judge(view) {
      if (!isObject(view.value)) yield notJson(view.exchange.response.body);
    },
  },
  {
    ...failureRule,
    id: "failure/object",
    says: 'An error\'s body is {"error": {…}}.',
    source: 'specification: ErrorResponse; FastAPI\'s detail, {"object": "error"}, a bare message',
    breaks: ["official SDKs (error.code and error.param are missing)", "clients that read error.message"],
    shown: (view) => isFailure(view) && isObject(view.value),
    *judge(view) {
      if (!("error" in objectOf(view)))
        yield { start: 0, end: Math.min(view.exchange.response.body.length, 80), found: "no error member" };
    },
  },
  {
    ...failureRule,
    id: "failure/members",
    says: "An error has message, type, param and code.",
    source: "specification: Error (all four are required, param and code may be null)",
    breaks: ["typed clients (Go, Rust, Java, C#)", "clients that branch on code"],
    shown: (view) => isFailure(view) && vendorOf(view.exchange) === "OpenAI" && "error" in objectOf(view),
    *judge(view) {
      const found = errorObjectViolation(objectOf(view).error);
      if (found !== undefined) yield atName(view, "error", found);
    },
  },
  {
    id: "failure/no-trace",
    severity: "warning",
    concern: "errors look like answers",
    says: "An error contains no stack trace.",
    source: "OWASP Error Handling Cheat Sheet; FastAPI and Express in debug mode",
    breaks: ["users (and it discloses how the server works)"],
    judges: "body",
    shown: isFailure,
    *judge(view) {
      const { body } = view.exchange.response;
      const trace = /Traceback \(most recent call last\)|\\n\s+at .+:\d+:\d+|File \\?".+\\?", line \d+/.exec(body);
      if (trace) yield { start: trace.index, end: trace.index + trace[0].length, found: "a stack trace" };
    },
  },
  {
    ...failureRule,
    id: "failure/status",
    says: "An error does not have status 200.",
    source: "specification",
    breaks: ["every client (it treats the error as an answer)"],
    shown: (view) => view.exchange.response.status === 200,
    *judge(view) {
      const { error, object } = objectOf(view);
      // A failed response has its error as a member.
      if (object === "response") return;
      if (error !== undefined && error !== null) yield atName(view, "error", "an error with status 200");
    },
  },
];

/** Rules about the headers of answers that are not streamed; those of streams are in ../stream/headers.ts. Source: recordings. */
export const jsonHeaderRules: readonly BodyRule[] = [
  {
    id: "headers/json",
    severity: "error",
    concern: "requests are misunderstood",
    says: "A JSON body has Content-Type application/json.",
    source: "recordings 2169 of 2169",
    breaks: ["official SDKs (they return the text unparsed)"],
    judges: "body",
    shown: (view) => view.exchange.response.headers !== null && view.value !== undefined,
    *judge(view) {
      const type = view.exchange.response.headers?.["content-type"];
      if (!/^application\/json\b/.test(type ?? "")) yield { start: 0, end: 0, found: `content-type ${shown(type)}` };
    },
  },
  {
    id: "headers/request-id",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Every answer has an x-request-id.",
    source: "recordings 1693 of 1693",
    breaks: [],
    judges: "body",
    shown: ({ exchange }) => exchange.response.headers !== null && vendorOf(exchange) === "OpenAI",
    *judge(view) {
      if (!view.exchange.response.headers?.["x-request-id"]) yield { start: 0, end: 0, found: "no x-request-id" };
    },
  },
];
