import { writeOutput } from "../chat/send.ts";
import type { GenerationRequest, TextPrompt } from "../../core/request.ts";
import { finishRequestBody, withoutUndefined, writeSampling } from "../adapt/server-profile.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../adapt/server-profile.ts";

/** Writes the body of a legacy completions request to another server; see `writeChatRequest`. Throws `TypeError` for a conversation. */
export function writeCompletionsRequest(
  request: GenerationRequest,
  profile: ServerProfile,
  note: NoteAdaptation = () => {},
): RequestBody {
  const { prompt, passthrough } = request;
  if (prompt.kind !== "text") throw new TypeError("A completions request needs a text.");
  const body = passthrough?.dialect === "completions" ? { ...passthrough.body } : completionMembers(request, prompt);
  return finishRequestBody(body, request, profile, note);
}

/** Writes all members of a completions request but `model` and `stream`. */
export function completionMembers(request: GenerationRequest, prompt: TextPrompt): RequestBody {
  const { prompts, suffix, echo, bestOf } = prompt;
  return {
    ...request.extra,
    prompt: prompts.length === 1 ? prompts[0] : prompts,
    ...writeSampling(request),
    ...withoutUndefined({ suffix, echo, best_of: bestOf, logprobs: request.logprobs?.top }),
    ...(request.output && writeOutput(request.output)),
  };
}
