import type { GenerationEvent, Usage } from "../../wire/core/events.ts";
import { invalidRequest } from "../../wire/core/failure.ts";
import type { FailureError } from "../../wire/core/failure.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Format } from "../../text/formats/format.ts";
import { mergeBatches } from "../../wire/core/merge-batches.ts";
import { demandsJson, JsonAnswer } from "../../wire/apis/tolerant/json-answer.ts";
import { type RepairId, sentenceOfRepair } from "../../wire/apis/tolerant/repairs.ts";
import { unsupportedParameter } from "../../wire/apis/request/refusals.ts";
import { OutputReader } from "./output-reader.ts";
import type { ProgramMessage, ProgramTool } from "../../wire/apis/chat/request-types.ts";
import type { Program, ProgramInput, ProgramItem, ProgramReturn } from "../../wire/apis/chat/program.ts";
import { failureEnd } from "./program-failure.ts";
import { chatMembers } from "../../wire/apis/chat/send.ts";
import { completionMembers } from "../../wire/apis/completions/send.ts";
import { writeChatMessages, writeChatTools } from "../../wire/apis/chat/write-messages.ts";

export interface RunOptions {
  /** How to read tool calls and reasoning that the program leaves in its text. */
  readonly format: Format;
  readonly newCallId: () => string;
  /** Clients see the message of any exception. */
  readonly showErrors: boolean;
  /** Receives one line for each defect of the program that does not fail the request. */
  readonly warn?: (line: string) => void;
}

/**
 * Runs a program for a request: one concurrent run for each choice. Yields the events of all runs and one `end`. Never throws.
 */
export async function* runProgram(
  program: Program,
  request: GenerationRequest,
  signal: AbortSignal,
  options: RunOptions,
): AsyncGenerator<GenerationEvent[]> {
  const { showErrors } = options;
  const refusal = refusalOf(program, request);
  if (refusal !== null) {
    yield [failureEnd(refusal, { requestId: request.id, showErrors })];
    return;
  }
  const cancel = new AbortController();
  const whole = AbortSignal.any([signal, cancel.signal]);
  const usages: (Usage | undefined)[] = [];
  const runs = Array.from({ length: choicesOf(request) }, (_, choice) =>
    runChoice(program, request, choice, whole, options, (usage) => (usages[choice] = usage)),
  );
  const events = runs.length === 1 && runs[0] ? runs[0] : merged(runs);
  try {
    if (request.prompt.kind === "chat" && demandsJson(request)) yield* onlyJson(events, request, options);
    else yield* events;
    const usage = sumOfUsage(usages, request.n ?? 1);
    yield [...(usage ? [{ type: "usage", usage } as const] : []), { type: "end", end: { kind: "done" } }];
  } catch (thrown) {
    yield [
      signal.aborted
        ? { type: "end", end: { kind: "client-gone" } }
        : failureEnd(thrown, { requestId: request.id, showErrors }),
    ];
  } finally {
    // A choice failed, or the client has disconnected: the other runs are not needed.
    cancel.abort();
  }
}

async function* merged(
  runs: readonly AsyncGenerator<GenerationEvent[], undefined>[],
): AsyncGenerator<GenerationEvent[]> {
  for await (const [, batch] of mergeBatches(runs)) yield batch;
}

/** Programs send the texts of models, which put JSON in a fence. */
async function* onlyJson(
  batches: AsyncIterable<GenerationEvent[]>,
  { id, stream }: GenerationRequest,
  { warn }: RunOptions,
): AsyncGenerator<GenerationEvent[]> {
  const note = (repair: RepairId): void => {
    if (repair === "json-other-text") warn?.(`${sentenceOfRepair(repair)} (request ${id})`);
  };
  const answer = new JsonAnswer({ isWhole: !stream, note });
  for await (const batch of batches) {
    const events = answer.transform(batch);
    if (events.length > 0) yield events;
  }
}

/** The refusal of a request for what the program does not offer; null: it can be run. */
function refusalOf(program: Program, request: GenerationRequest): FailureError | null {
  const { prompt, n = 1, logprobs, wantsTokenIds, promptLogprobs } = request;
  if (prompt.kind === "text") {
    // Without log probabilities there is no best answer.
    if ((prompt.bestOf ?? n) > n) return unsupportedParameter("best_of");
    if (!prompt.prompts.every((entry) => typeof entry === "string")) return tokensForProgram;
  }
  if (logprobs && program.offers?.includes("logprobs") !== true) return unsupportedParameter("logprobs");
  if (wantsTokenIds) return unsupportedParameter("return_token_ids");
  return promptLogprobs ? unsupportedParameter("prompt_logprobs") : null;
}

const tokensForProgram = invalidRequest(
  "This model is a program, which has no token ids. Send 'prompt' as a string or a list of strings.",
  "prompt",
  "unsupported_value",
);

async function* runChoice(
  program: Program,
  request: GenerationRequest,
  choice: number,
  signal: AbortSignal,
  options: RunOptions,
  report: (usage: Usage | undefined) => void,
): AsyncGenerator<GenerationEvent[]> {
  const reader = new OutputReader({
    choice,
    newCallId: options.newCallId,
    format: options.format,
    callsAllowed: (request.tools?.length ?? 0) > 0 && request.toolChoice?.type !== "none",
    ...echoOf(request, choice),
    onDroppedCall: (name) => options.warn?.(droppedCall(name, request)),
    ...(request.tools && { tools: request.tools }),
    ...(request.limits.stop && { stop: request.limits.stop }),
  });
  for await (const item of itemsOf(program, request, choice, signal)) {
    signal.throwIfAborted();
    const { usage } = reader;
    const events = reader.read(item);
    // An API may write the prompt's tokens at the beginning of the answer. The usage of several runs is summed at the end.
    if (choicesOf(request) === 1 && reader.usage && reader.usage !== usage)
      events.unshift({ type: "usage", usage: reader.usage });
    if (events.length > 0) yield events;
    if (reader.stopped) break;
  }
  report(reader.usage);
  yield reader.end();
}

function echoOf({ prompt, n = 1 }: GenerationRequest, choice: number): { readonly echo?: string } {
  if (prompt.kind !== "text" || !prompt.echo) return {};
  const text = prompt.prompts[Math.floor(choice / n)];
  return typeof text === "string" ? { echo: text } : {};
}

function droppedCall(name: string, { id, toolChoice }: GenerationRequest): string {
  const reason = toolChoice?.type === "none" ? "the request has `tool_choice: none`" : "the request has no tools";
  return `${id}: a tool call of the program was dropped, because ${reason}: ${name.slice(0, 100)}`;
}

/** A program's items: what it returns or yields. The return value of a generator is its last item. */
async function* itemsOf(
  program: Program,
  request: GenerationRequest,
  choice: number,
  signal: AbortSignal,
): AsyncGenerator<ProgramItem> {
  const returned = await raceAbort(Promise.resolve(program(programInput(request, choice, signal))), signal);
  const iterator = iteratorOf(returned);
  if (iterator === undefined) {
    yield returned as ProgramItem;
    return;
  }
  let done = false;
  try {
    while (!done) {
      const result = await raceAbort(Promise.resolve(iterator.next()), signal);
      done = result.done === true;
      yield result.value;
    }
  } finally {
    // Runs the program's `finally` blocks. Not awaited: a program that ignores its signal must not delay the answer.
    if (!done) void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

function iteratorOf(value: ProgramReturn): AsyncIterator<ProgramItem> | Iterator<ProgramItem> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Symbol.asyncIterator in value) return value[Symbol.asyncIterator]();
  if (Symbol.iterator in value) return value[Symbol.iterator]();
  return undefined;
}

/** Rejects when the signal aborts: a program may ignore its signal, and its next item may never come. */
function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Counts a prompt once for the choices that share it, and sums the completions, as OpenAI does. */
function sumOfUsage(usages: readonly (Usage | undefined)[], n: number): Usage | undefined {
  const known = usages.filter((usage) => usage !== undefined);
  const [first] = known;
  if (first === undefined) return undefined;
  if (usages.length === 1) return first;
  const perPrompt = usages.filter((usage, choice) => usage !== undefined && choice % n === 0);
  const total = (list: readonly (Usage | undefined)[], of: "promptTokens" | "completionTokens") =>
    list.reduce((sum, usage) => sum + (usage?.[of] ?? 0), 0);
  return { promptTokens: total(perPrompt, "promptTokens"), completionTokens: total(known, "completionTokens") };
}

/** Members of a request that a program gets under another name, or that concern the form of the answer only. */
const notOptions = new Set(["messages", "prompt", "tools", "functions", "n", "best_of", "echo"]);

/** The input of one run of a program: one choice of one prompt of a request. */
function programInput(request: GenerationRequest, choice: number, signal: AbortSignal): ProgramInput {
  const { output, prompt, tools } = request;
  const members = prompt.kind === "chat" ? chatMembers(request, prompt) : completionMembers(request, prompt);
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    if (!notOptions.has(name) && value !== null) options[name] = value;
  }
  return {
    messages: messagesOf(request, choice),
    ...(tools && tools.length > 0 && { tools: writeChatTools(tools) as unknown as readonly ProgramTool[] }),
    model: request.model,
    options,
    ...(output?.type === "json-schema" && {
      responseSchema: { name: output.name, schema: output.schema, strict: output.strict },
    }),
    signal,
    request: { id: request.id, stream: request.stream, choice },
  };
}

/** The number of runs that a request asks for: choices × prompts, numbered as OpenAI numbers them. */
function choicesOf(request: GenerationRequest): number {
  return (request.n ?? 1) * (request.prompt.kind === "text" ? request.prompt.prompts.length : 1);
}

function messagesOf({ prompt, n = 1 }: GenerationRequest, choice: number): readonly ProgramMessage[] {
  if (prompt.kind === "chat") return writeChatMessages(prompt.messages) as unknown as readonly ProgramMessage[];
  return [{ role: "user", content: String(prompt.prompts[Math.floor(choice / n)]) }];
}
