import type { ToolChoice } from "../../core/message.ts";
import type {
  ChatPrompt,
  GenerationRequest,
  Limits,
  OutputConstraint,
  ReasoningOptions,
  Sampling,
} from "../../core/request.ts";
import { estimateTokens } from "../../core/estimate-tokens.ts";
import { atOnce } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { ReadOptions } from "../port.ts";
import { lean } from "../profile.ts";
import type { Profile } from "../profile.ts";
import { schemasIn } from "../request/check-schema.ts";
import { checkedForServer, unknownValue } from "../request/unknown-values.ts";
import { mostUnknown } from "../request/size-limits.ts";
import { tooManyUnknown } from "../request/refusals.ts";
import type { HeaderReader } from "../voice.ts";
import type { AskedMessage, ShownThoughts } from "./asked-message.ts";
import { withKnownBlocks } from "./known-blocks.ts";
import { memberShapes, messageParameters } from "./message-parameters.ts";
import { checkConversation } from "./check-conversation.ts";
import { messageForms } from "./form.ts";
import { readConversation } from "./read-conversation.ts";
import { toolChanges } from "./tool-changes.ts";
import { readTools } from "./read-tools.ts";
import type { ReadTools } from "./read-tools.ts";
import type { FailureError } from "../../core/failure.ts";
import { lengthProblem } from "../request/text-limits.ts";
import { invalidRequest } from "../../core/failure.ts";
import { issueFailure, refusal } from "./request-issue.ts";
import type { RawRequest } from "./request-shapes.ts";
import { withResultsFirst } from "./results-first.ts";

/** A request as it was read. */
export interface ReadMessageRequest {
  readonly request: GenerationRequest;
  readonly asked: AskedMessage;
  readonly warnings: readonly string[];
}

/** Options of reading one body. */
export interface MessageReadOptions extends ReadOptions {
  /** Its tokens are counted, nothing is generated: there is no `max_tokens`. */
  readonly countsTokens?: boolean;
}

/** Reads the body of `POST /v1/messages`, or of its `count_tokens`, at once. Throws `FailureError` in Anthropic's words. */
export function readMessageRequest(body: unknown, requestId: string, options?: MessageReadOptions): ReadMessageRequest {
  return atOnce(messageRequestInSteps(body, requestId, options));
}

/** The same in steps, for a long body. */
export function* messageRequestInSteps(
  body: unknown,
  requestId: string,
  options: MessageReadOptions = {},
): Steps<ReadMessageRequest> {
  const { profile = lean, forwards = false, header, countsTokens = false } = options;
  const warnings: string[] = [];
  if (header && header("anthropic-version") === undefined && profile.judgesAsVendor)
    throw refusal("anthropic-version", "header is required");
  const raw = yield* checkedRequest(body, { profile, forwards, countsTokens }, warnings);
  yield* checkConversation(raw, profile, warnings);
  checkThinking(raw, profile, warnings);
  checkOutput(raw, profile);
  const tools = yield* readTools(raw, yield* toolChanges(raw.messages), { profile, forwards, warnings });
  const { messages, isPrefilled } = yield* readConversation(raw, warnings);
  const prompt: ChatPrompt = {
    kind: "chat",
    messages,
    template: isPrefilled ? { addGenerationPrompt: false, continueFinalMessage: true } : {},
  };
  const reasoning = reasoningOf(raw);
  const output = outputOf(raw);
  const members = body as Readonly<Record<string, unknown>>;
  const request: GenerationRequest = {
    id: requestId,
    model: raw.model,
    prompt,
    sampling: samplingOf(raw),
    limits: limitsOf(raw),
    wantsUsage: true,
    stream: raw.stream ?? false,
    extra: {},
    passthrough: {
      dialect: "messages",
      body: profile.judgesAsVendor || !forwards ? members : yield* withResultsFirst(members),
      headers: betaHeaders(header),
    },
    ...toolMembers(tools),
    ...(reasoning && { reasoning }),
    ...(output && { output }),
  };
  const asked: AskedMessage = {
    requestId,
    thoughts: shownThoughts(reasoning, profile),
    estimatePrompt: () => estimateTokens(request),
  };
  return { request, asked, warnings };
}

/** What the client says of the form of its request: which of Anthropic's versions, and which members under trial. */
function betaHeaders(header: HeaderReader = () => undefined): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const name of ["anthropic-version", "anthropic-beta"]) {
    const value = header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

function* checkedRequest(
  body: unknown,
  { profile, forwards, countsTokens }: { profile: Profile; forwards: boolean; countsTokens: boolean },
  warnings: string[],
): Steps<RawRequest> {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw refusal("body", "Input should be a valid dictionary");
  const members = body as Readonly<Record<string, unknown>>;
  const strict = profile.judgesAsVendor;
  const shapes = memberShapes(strict);
  const request: Record<string, unknown> = {};
  const unknownBlocks = new Set<string>();
  for (const { name, required, treatment } of messageParameters) {
    const sent = Object.hasOwn(members, name) ? members[name] : undefined;
    if (sent === undefined || sent === null) {
      if (required && !(countsTokens && name === "max_tokens")) throw refusal(name, "Field required");
      continue;
    }
    const value = name === "messages" && !strict ? yield* withKnownBlocks(sent, unknownBlocks) : sent;
    // Only the server that began a thread can continue it, and a model may have several servers: every turn needs the whole conversation.
    if (treatment === "refused" && (!forwards || name === "thread")) throw serverState(name);
    const shape = shapes.get(name);
    if (!shape) continue;
    const { checked, unknown } = yield* checkedForServer(shape, value, forwards);
    if (!checked.success) throw issueFailure(name, value, checked.error.issues);
    for (const place of unknown) warnings.push(unknownValue(name, place));
    request[name] = checked.data;
  }
  for (const type of unknownBlocks)
    warnings.push(`messages: blocks of type "${type}" are not known here, and left out`);
  const names = Object.keys(members);
  if (names.length > mostUnknown + messageParameters.length) throw tooManyUnknown();
  for (const name of names) {
    if (shapes.has(name)) continue;
    if (strict) throw refusal(name, "Extra inputs are not permitted");
    warnings.push(`${name} is not known here, and has no effect`);
  }
  // The shapes have checked it: this is the one place where that is taken on trust.
  return request as unknown as RawRequest;
}

/** What Anthropic's servers keep between requests, or make of them. Its clients know by the code to do without. */
function serverState(name: string): FailureError {
  const code = name === "thread" ? "thread_unsupported_request" : "compaction_unavailable";
  return invalidRequest(
    `${name}: This server keeps no conversations. Send the full conversation without \`${name}\`.`,
    name,
    code,
  );
}

function checkThinking(
  { thinking, max_tokens: most }: RawRequest,
  { judgesAsVendor }: Profile,
  warnings: string[],
): void {
  const budget = thinking?.budget_tokens;
  if (budget === undefined || most === undefined || most > budget) return;
  const words = "`max_tokens` must be greater than `thinking.budget_tokens`";
  if (judgesAsVendor) throw refusal("max_tokens", words);
  warnings.push(words);
}

/** Anthropic takes only schemas whose objects are closed. Source: recordings of 2026. */
function checkOutput({ output_config: config, output_format: older }: RawRequest, { judgesAsVendor }: Profile): void {
  const schema = config?.format?.schema ?? older?.schema;
  if (!judgesAsVendor || schema === undefined) return;
  const path = config?.format ? "output_config.format.schema" : "output_format.schema";
  for (const { type, additionalProperties } of schemasIn(schema)) {
    if (type === "object" && additionalProperties !== false)
      throw refusal(path, "For 'object' type, 'additionalProperties' must be explicitly set to false");
  }
}

function samplingOf({ temperature, top_p: topP, top_k: topK }: RawRequest): Sampling {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
  };
}

function limitsOf({ max_tokens: maxTokens, stop_sequences: sequences = [] }: RawRequest): Limits {
  const stop = sequences.filter((text) => text !== "");
  const problem = lengthProblem(stop);
  if (problem !== undefined) throw refusal("stop_sequences", problem);
  return {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop.length > 0 && { stop }),
  };
}

/** A turn may set the effort anew (Claude Code 2.1.330 does so in a `system` message); the last one counts. */
function reasoningOf({ thinking, output_config: config, messages }: RawRequest): ReasoningOptions | undefined {
  const ofTurn = messages.findLast(({ output_config: own }) => typeof own?.effort === "string")?.output_config;
  const effort = ofTurn?.effort ?? config?.effort ?? undefined;
  const options: ReasoningOptions = {
    ...(effort !== undefined && { effort }),
    ...(thinking && { mode: modes[thinking.type] }),
    ...(thinking?.budget_tokens !== undefined && { budgetTokens: thinking.budget_tokens }),
    ...(thinking?.display && { show: thinking.display === "omitted" ? ("omitted" as const) : ("summary" as const) }),
  };
  return Object.keys(options).length === 0 ? undefined : options;
}

const modes = { enabled: "on", adaptive: "adaptive", between_tools: "adaptive", disabled: "off" } as const;

function shownThoughts(reasoning: ReasoningOptions | undefined, { name }: Profile): ShownThoughts {
  const { mode, show } = reasoning ?? {};
  if (mode === "off" || (mode === undefined && !messageForms[name].showsUnaskedThoughts)) return "hidden";
  return show === "omitted" ? "omitted" : "shown";
}

function outputOf({ output_config: config, output_format: older }: RawRequest): OutputConstraint | undefined {
  const format = config?.format ?? older;
  if (!format) return undefined;
  const path = config?.format ? "output_config.format.schema" : "output_format.schema";
  return { type: "json-schema", name: "output", schema: format.schema, strict: true, path };
}

function toolMembers({ tools, hostedTools, toolChoice, parallel }: ReadTools): {
  tools?: ReadTools["tools"];
  hostedTools?: ReadTools["hostedTools"];
  toolChoice?: ToolChoice;
  parallelToolCalls?: boolean;
} {
  return {
    ...(tools.length > 0 && { tools }),
    ...(hostedTools.length > 0 && { hostedTools }),
    ...(tools.length > 0 && toolChoice && { toolChoice }),
    ...(tools.length > 0 && !parallel && { parallelToolCalls: false }),
  };
}
