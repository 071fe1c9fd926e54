import { invalidRequest, type FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { ReadContent } from "./contents.ts";
import { anySignature } from "./signatures.ts";

/** Placeholders that Google takes for any signature. Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs". */
export const signatureStandIns: ReadonlySet<string> = new Set([anySignature, "context_engineering_is_the_way_to_go"]);

/**
 * Why Google refuses a conversation: a call without its result (googleapis/python-genai#842), and, since Gemini 3, the first call of a step
 * without a signature, in all steps since the last text of the user (https://ai.google.dev/gemini-api/docs/thought-signatures). Whose a
 * signature is, only Google knows.
 */
export function turnRefusal(contents: readonly ReadContent[], model: string): FailureError | undefined {
  const demandsSignatures = /(?:^|\/)gemini-(?:[3-9]|\d\d)/.test(model);
  const since = contents.findLastIndex(
    ({ role, parts }) => role !== "model" && parts?.some(({ text }) => typeof text === "string"),
  );
  for (const [at, { role, parts }] of contents.entries()) {
    if (role !== "model") continue;
    const calls = (parts ?? []).filter(({ functionCall }) => isObject(functionCall));
    const results = (contents[at + 1]?.parts ?? []).filter(({ functionResponse }) => isObject(functionResponse));
    if (calls.length > 0 && calls.length !== results.length)
      return invalidRequest(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
        `contents[${at}]`,
      );
    const [first] = calls;
    if (demandsSignatures && at > since && first && (first.thoughtSignature ?? "") === "")
      return invalidRequest(missingSignature(first.functionCall?.name ?? "", at), `contents[${at}]`);
  }
  return undefined;
}

/** What Gemini says of a call without its signature. `position`: of its content or message. */
export function missingSignature(name: string, position: number): string {
  return (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing " +
    `thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ` +
    `${position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`
  );
}
