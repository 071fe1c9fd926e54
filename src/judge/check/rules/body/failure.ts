import { vendorOf } from "../exchange.ts";
import { atName, notJson, objectOf, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView } from "../view.ts";
import { type Rules, notShown } from "../rule.ts";

const isFailure = (view: BodyView) => view.exchange.response.status >= 400;

/** Rules about errors. Source: specification, `Error` and `ErrorResponse`; recorded errors. */
export const failureRules: Rules<BodyView> = {
  *"failure/json"(view) {
    if (!isFailure(view)) return notShown;
    if (!isObject(view.value)) yield notJson(view.exchange.response.body);
  },
  *"failure/object"(view) {
    if (!isFailure(view) || !isObject(view.value)) return notShown;
    if (!("error" in objectOf(view)))
      yield { start: 0, end: Math.min(view.exchange.response.body.length, 80), found: "no error member" };
  },
  *"failure/no-trace"(view) {
    if (!isFailure(view)) return notShown;
    const { body } = view.exchange.response;
    const trace = /Traceback \(most recent call last\)|\\n\s+at .+:\d+:\d+|File \\?".+\\?", line \d+/.exec(body);
    if (trace) yield { start: trace.index, end: trace.index + trace[0].length, found: "a stack trace" };
  },
  *"failure/status"(view) {
    if (view.exchange.response.status !== 200) return notShown;
    const { error, object } = objectOf(view);
    // A failed response has its error as a member.
    if (object === "response") return;
    if (error !== undefined && error !== null) yield atName(view, "error", "an error with status 200");
  },
};

/** Rules about the headers of answers that are not streamed; those of streams are in ../stream/headers.ts. Source: recordings. */
export const jsonHeaderRules: Rules<BodyView> = {
  *"headers/json"(view) {
    if (view.exchange.response.headers === null || view.value === undefined) return notShown;
    const type = view.exchange.response.headers?.["content-type"];
    if (!/^application\/json\b/.test(type ?? "")) yield { start: 0, end: 0, found: `content-type ${shown(type)}` };
  },
  *"headers/request-id"(view) {
    if (view.exchange.response.headers === null || vendorOf(view.exchange) !== "OpenAI") return notShown;
    if (!view.exchange.response.headers?.["x-request-id"]) yield { start: 0, end: 0, found: "no x-request-id" };
  },
};
