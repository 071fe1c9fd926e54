import { shown } from "../place.ts";
import { vendorOf } from "../exchange.ts";
import type { BodyRule } from "../rule.ts";

/** Headers of answers that are no stream; those of streams are in ../stream/headers.ts. Source: recordings. */
export const headerRules: readonly BodyRule[] = [
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
