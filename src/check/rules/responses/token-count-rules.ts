import { isObject } from "../../../core/json.ts";
import { atName, objectOf } from "../body/body-place.ts";
import { shown } from "../place.ts";
import type { BodyRule } from "../rule.ts";

/** What \`POST /v1/responses/input_tokens\` answers. Source: 5 recordings of 2026-07 and 2026-08. */
export const tokenCountRules: readonly BodyRule[] = [
  {
    id: "responses/input-tokens",
    severity: "error",
    concern: "token counts are wrong",
    says: 'POST /v1/responses/input_tokens answers {"object": "response.input_tokens", "input_tokens": n}.',
    source: "specification: TokenCountsResource; recordings 5 of 5",
    breaks: ["official SDKs: responses.inputTokens.count()", "clients that trim their history by it"],
    judges: "body",
    shown: ({ exchange, value }) =>
      exchange.endpoint === "response-tokens" && exchange.response.status === 200 && isObject(value),
    *judge(view) {
      const { object, input_tokens: count } = objectOf(view);
      if (object !== "response.input_tokens") yield atName(view, "object", `object is ${shown(object)}`);
      if (!(Number.isInteger(count) && (count as number) > 0))
        yield atName(view, "input_tokens", `input_tokens is ${shown(count)}`);
    },
  },
];
