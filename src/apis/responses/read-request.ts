import { invalidRequest } from "../../core/failure.ts";
import { isLong } from "../../core/json-in-pieces.ts";
import type { Tool } from "../../core/message.ts";
import type { GenerationRequest, ReasoningOptions } from "../../core/request.ts";
import { atOnce } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { ReadOptions } from "../port.ts";
import { lean } from "../profile.ts";
import { askedAnswer, sharedMembers } from "../request/build-request.ts";
import { emptyDraft } from "../request/draft.ts";
import { mostRepeated } from "../request/size-limits.ts";
import { readParameters } from "../request/read-parameters.ts";
import { readInput } from "./read-input.ts";
import { readToolChoice } from "./read-tool-choice.ts";
import { readTools } from "./read-tools.ts";
import type { ReadTools } from "./read-tools.ts";
import { echoOfNothing } from "./response-echo.ts";
import type { AskedResponse, ResponseEcho } from "./response-echo.ts";
import type { ResponsesDraft } from "./responses-draft.ts";
import { withoutCompactions } from "./state/compaction.ts";
import { previousNotFound } from "./state/previous-not-found.ts";
import { nothingRecalled } from "./state/recall.ts";
import type { Recalled } from "./state/recall.ts";
import { responsesParameters } from "./responses-parameters.ts";

export interface ReadResponsesRequest {
  readonly request: GenerationRequest;
  readonly asked: AskedResponse;
  readonly warnings: readonly string[];
  readonly preparesOnly: boolean;
}

/** Reads the body of `POST /v1/responses` at once. `recalled`: what it refers to. Throws `FailureError` in OpenAI's words. */
export function readResponsesRequest(
  body: unknown,
  requestId: string,
  options?: ReadOptions,
  recalled?: Recalled,
): ReadResponsesRequest {
  return atOnce(responsesRequestInSteps(body, requestId, options, recalled));
}

/** The same in steps, for a long body or much that it refers to. */
export function* responsesRequestInSteps(
  body: unknown,
  requestId: string,
  { profile = lean, forwards = false }: ReadOptions = {},
  recalled: Recalled = nothingRecalled,
): Steps<ReadResponsesRequest> {
  const draft: ResponsesDraft = { ...emptyDraft("responses", profile, forwards), include: [], told: {} };
  const members = yield* readParameters(body, responsesParameters, draft);
  const strict = profile.judgesAsVendor;
  const { warnings } = draft;
  const previousId = draft.told.previousResponseId ?? undefined;
  if (previousId !== undefined && !recalled.previous && !forwards) throw previousNotFound(previousId);
  const found: Tool[] = [];
  const messages = yield* readInput(inputOf(draft), { strict, forwards, warnings, found, recalled });
  if (draft.instructions !== undefined) {
    messages.unshift({ role: "system", content: draft.instructions, path: "instructions" });
  }
  const read = yield* readTools(draft.toolList ?? [], strict, found);
  const { tools, hosted } = read;
  for (const { type } of hosted)
    warnings.push(`tools: nothing here runs a tool of type ${JSON.stringify(type)}; it is left out`);
  const choice = draft.choice === undefined ? undefined : readToolChoice(draft.choice, read, forwards);
  const { includeObfuscation } = askedAnswer(draft);
  const summarizes = (draft.told.reasoning?.summary ?? null) !== null;
  const wantsLogprobs = draft.include.includes("message.output_text.logprobs");

  const request = Object.assign(sharedMembers(draft, requestId, yield* selfContained(members, recalled)), {
    prompt: { kind: "chat", messages, template: draft.template } as const,
    wantsUsage: true,
  });
  const reasoning: ReasoningOptions = { ...request.reasoning, ...(summarizes && { show: "summary" }) };
  if (Object.keys(reasoning).length > 0) request.reasoning = reasoning;
  if (wantsLogprobs) request.logprobs = { top: draft.topLogprobs ?? 0 };
  if (tools.length > 0) {
    request.tools = tools;
    if (choice) request.toolChoice = choice;
    if (draft.parallelToolCalls !== undefined) request.parallelToolCalls = draft.parallelToolCalls;
  }
  if (hosted.length > 0) request.hostedTools = hosted;
  const asked: AskedResponse = {
    echo: checkedEcho(echoOf(draft, read)),
    summarizes,
    sealsThoughts: draft.include.includes("reasoning.encrypted_content"),
    logprobs: wantsLogprobs,
    ...(includeObfuscation !== undefined && { includeObfuscation }),
    grouped: read.grouped,
    searches: read.searches,
  };
  return { request, asked, warnings, preparesOnly: draft.preparesOnly ?? false };
}

/** The body without what only this server can know: for an upstream that speaks the same API. */
function* selfContained(
  body: Readonly<Record<string, unknown>>,
  { previous, history, references }: Recalled,
): Steps<Readonly<Record<string, unknown>>> {
  const { background, previous_response_id: previousId, input, ...rest } = body;
  const said = input ?? [];
  const own: readonly unknown[] = Array.isArray(said) ? said : [{ role: "user", content: said }];
  const known = references.size === 0 ? own : own.map((item) => referenced(item, references));
  const placed = [...history, ...known].map((item) => ({ item, path: "" }));
  const items = (yield* withoutCompactions(placed)).map(({ item }) => item);
  const isAsItCame = items.length === own.length && items.every((item, at) => item === own[at]);
  if (isAsItCame && background === undefined && !previous) return body;
  return {
    ...rest,
    ...(!previous && previousId !== undefined && { previous_response_id: previousId }),
    input: isAsItCame ? input : items,
  };
}

function referenced(item: unknown, references: Recalled["references"]): unknown {
  return references.get((item as { readonly id?: string } | null)?.id ?? "") ?? item;
}

function inputOf({ input, instructions, forwards, told }: ResponsesDraft): string | readonly unknown[] {
  if (input !== undefined && (input.length > 0 || instructions !== undefined || typeof input === "string"))
    return input;
  if (forwards || (told.previousResponseId ?? null) !== null) return [];
  throw invalidRequest(
    "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
    "input",
    "missing_required_parameter",
  );
}

/** Instructions, tools and schemas come back in each answer, and up to three times in a stream. */
function checkedEcho(echo: ResponseEcho): ResponseEcho {
  if (!isLong(echo, mostRepeated)) return echo;
  const message = `What a response repeats of its request (instructions, tools, formats) may have at most ${mostRepeated} characters.`;
  throw invalidRequest(message, null, "request_too_large");
}

/** What the client left out has OpenAI's defaults. */
function echoOf({ told, sampling }: ResponsesDraft, { echo }: ReadTools): ResponseEcho {
  const { frequencyPenalty, presencePenalty, temperature, topP } = echoOfNothing;
  return {
    ...echoOfNothing,
    frequencyPenalty: sampling.frequencyPenalty ?? frequencyPenalty,
    presencePenalty: sampling.presencePenalty ?? presencePenalty,
    temperature: sampling.temperature ?? temperature,
    tools: echo,
    topP: sampling.topP ?? topP,
    ...told,
  };
}
