import type { GenerationRequest, TextPrompt } from "../../generation/request.ts";
import { finishRequestBody, withoutUndefined, writeSampling } from "../request-dialect.ts";
import type { RequestBody, RequestDialect } from "../request-dialect.ts";

/** The body of a legacy completions request to another server; see `writeChatRequest`. */
export function writeCompletionsRequest(
  request: GenerationRequest,
  prompt: TextPrompt,
  dialect: RequestDialect,
): RequestBody {
  if (request.body["prompt"] !== undefined) return finishRequestBody({ ...request.body }, request, dialect);
  const { prompts, suffix, echo, bestOf } = prompt;
  const body: RequestBody = {
    prompt: prompts.length === 1 ? prompts[0] : prompts,
    ...writeSampling(request),
    ...withoutUndefined({ suffix, echo, best_of: bestOf, logprobs: request.logprobs?.top }),
    ...request.extra,
  };
  return finishRequestBody(body, request, dialect);
}
