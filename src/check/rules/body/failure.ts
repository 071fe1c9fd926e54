import { errorOffence } from "../error-object.ts";
import { vendorOf } from "../exchange.ts";
import { notJson } from "../not-json.ts";
import type { BodyRule } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { type BodyView } from "../view.ts";
import { atName, objectOf } from "./body-place.ts";

const hidden = "errors look like answers";
const failed = (view: BodyView) => view.exchange.response.status >= 400;

/** Error answers. Source: specification, `Error` and `ErrorResponse`; recorded errors. */
export const failureRules: readonly BodyRule[] = [
  {
    id: "failure/json",
    severity: "error",
    concern: hidden,
    says: "The body of an error is JSON, not an HTML page, plain text or empty.",
    source: "specification: ErrorResponse; HTML pages of proxies, plain text of frameworks",
    breaks: ["official SDKs (an exception without a message)", "clients that read error.message"],
    judges: "body",
    shown: failed,
    *judge(view) {
      if (!isObject(view.value)) yield notJson(view.exchange.response.body);
    },
  },
  {
    id: "failure/object",
    severity: "error",
    concern: hidden,
    says: 'An error\'s body is {"error": {…}}.',
    source: 'specification: ErrorResponse; FastAPI\'s detail, {"object": "error"}, a bare message',
    breaks: ["official SDKs (error.code and error.param are missing)", "clients that read error.message"],
    judges: "body",
    shown: (view) => failed(view) && isObject(view.value),
    *judge(view) {
      if (!("error" in objectOf(view)))
        yield { start: 0, end: Math.min(view.exchange.response.body.length, 80), found: "no error member" };
    },
  },
  {
    id: "failure/members",
    severity: "error",
    concern: hidden,
    says: "An error has message, type, param and code.",
    source: "specification: Error (all four are required, param and code may be null)",
    breaks: ["typed clients (Go, Rust, Java, C#)", "clients that branch on code"],
    judges: "body",
    shown: (view) => failed(view) && vendorOf(view.exchange) === "OpenAI" && "error" in objectOf(view),
    *judge(view) {
      const found = errorOffence(objectOf(view).error);
      if (found !== undefined) yield atName(view, "error", found);
    },
  },
  {
    id: "failure/no-trace",
    severity: "warning",
    concern: hidden,
    says: "An error contains no stack trace.",
    source: "OWASP Error Handling Cheat Sheet; FastAPI and Express in debug mode",
    breaks: ["users (and it discloses how the server works)"],
    judges: "body",
    shown: failed,
    *judge(view) {
      const { body } = view.exchange.response;
      const trace = /Traceback \(most recent call last\)|\\n\s+at .+:\d+:\d+|File \\?".+\\?", line \d+/.exec(body);
      if (trace) yield { start: trace.index, end: trace.index + trace[0].length, found: "a stack trace" };
    },
  },
  {
    id: "failure/status",
    severity: "error",
    concern: hidden,
    says: "An error does not have status 200.",
    source: "specification",
    breaks: ["every client (it treats the error as an answer)"],
    judges: "body",
    shown: (view) => view.exchange.response.status === 200,
    *judge(view) {
      const { error, object } = objectOf(view);
      // A response that failed tells why.
      if (object === "response") return;
      if (error !== undefined && error !== null) yield atName(view, "error", "an error with status 200");
    },
  },
];
