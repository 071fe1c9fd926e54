import { Accumulator } from "../../../wire/core/accumulate.ts";
import type { GeneratedPart } from "../../../wire/core/accumulate.ts";
import { cancellable } from "../../../wire/core/cancellable.ts";
import type { EndEvent, FinishEvent, GenerationEvent, HostedResultEvent, Usage } from "../../../wire/core/events.ts";
import type { GenerationObserver } from "../../../wire/core/generation-observer.ts";
import { isFailed, resultContent } from "../../../wire/core/hosted-result.ts";
import { modelName } from "../../../wire/core/hosted-tool.ts";
import type { HostedCallIdentity } from "../../../wire/core/hosted-tool.ts";
import { assistantContent } from "../../../wire/core/message.ts";
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  Tool,
  ToolChoice,
  ToolMessage,
} from "../../../wire/core/message.ts";
import type { ChatPrompt, GenerationRequest } from "../../../wire/core/request.ts";
import type { Generate } from "../fallbacks.ts";
import { CitationFinder } from "./citations.ts";
import { functionsByName, HostedCalls, offerTools } from "./hosted-calls.ts";
import type { HostedLimits, OfferedFunction, OfferedTool, PlannedTool, RequestedCall } from "./hosted-calls.ts";

/*
 * The tool loop: above an engine, below the writers. When the model calls a hosted tool, the tool runs, the call and its result are appended
 * to the request, and the model is asked again, until it calls no hosted tool any more. The client gets one answer. Each round only appends
 * to the prompt, so that the prompt cache has all of it but the end.
 */

export interface HostedPlan {
  readonly tools: readonly PlannedTool[];
  readonly limits: HostedLimits;
  /** Where a limit is reached, the answer is paused, and the client lets it continue (`pause_turn`). Otherwise it ends. */
  readonly pauses: boolean;
}

type Batch = readonly GenerationEvent[];

/** Returns what generates with the hosted tools of a plan. Requests are conversations with one choice. */
export function withHostedTools(source: Generate, plan: HostedPlan): Generate {
  return (request, observer) => cancellable((signal) => new HostedAnswer(source, plan, request, signal).run(observer));
}

class HostedAnswer {
  readonly #source: Generate;
  readonly #plan: HostedPlan;
  readonly #request: GenerationRequest;
  readonly #prompt: ChatPrompt;
  readonly #signal: AbortSignal;
  readonly #calls: HostedCalls;
  readonly #citations = new CitationFinder();
  readonly #ids = new Set<string>();
  readonly #messages: Message[];
  /** Of the rounds that have ended. */
  #usage: Usage | undefined;
  #isStarted = false;
  /** The client's calls so far. */
  #clientCalls = 0;

  constructor(source: Generate, plan: HostedPlan, request: GenerationRequest, signal: AbortSignal) {
    this.#source = source;
    this.#plan = plan;
    this.#request = request;
    if (request.prompt.kind !== "chat") throw new TypeError("Hosted tools need a conversation.");
    this.#prompt = request.prompt;
    this.#messages = [...request.prompt.messages];
    this.#signal = signal;
    this.#calls = new HostedCalls(plan.limits, signal, request);
  }

  async *run(observer: GenerationObserver | undefined): AsyncGenerator<Batch> {
    const offered = await offerTools(this.#plan.tools, this.#signal);
    const functions = functionsByName(offered, this.#request.tools);
    let opening = listsOf(offered);
    const pending = this.#pendingCalls(functions);
    if (pending.length > 0) {
      this.#isStarted = true;
      yield [{ type: "start", choice: 0 }, ...opening];
      opening = [];
      for (const call of pending) yield callEvents(call);
      yield* this.#runCalls(pending, false);
    }
    const { maxRounds } = this.#plan.limits;
    // What is cancelled while its calls run asks the model no more.
    for (let round = 0; !this.#signal.aborted; round++) {
      const request = this.#roundRequest(functions, round === 0 && pending.length === 0);
      const counts = { clientCalls: this.#clientCalls, callsLeft: this.#calls.left };
      const reading = new Round(functions, this.#ids, counts, this.#citations, this.#isStarted);
      for await (const batch of this.#source(request, observer)) {
        const events = reading.read(batch, this.#usage);
        const at = opening.length > 0 ? events.findIndex(({ type }) => type === "start") : -1;
        if (at >= 0) events.splice(at + 1, 0, ...opening);
        if (at >= 0) opening = [];
        if (events.length > 0) yield events;
      }
      this.#isStarted ||= reading.hasStarted;
      const { end, finish, calls } = reading;
      if (end === undefined || end.end.kind !== "done" || finish === undefined) {
        if (end) yield [...(finish ? [finish] : []), end];
        return;
      }
      this.#clientCalls += reading.clientCalls;
      this.#usage = reading.usage ?? this.#usage;
      const isCut = finish.reason === "length" || finish.reason === "content-filter";
      if (calls.length === 0 || isCut) {
        const isDone = isCut || reading.clientCalls > 0 || !reading.waits;
        yield [isDone ? finish : { ...finish, reason: "stop" }, end];
        return;
      }
      this.#messages.push(reading.message());
      const refuses = round >= maxRounds || this.#calls.isOver || this.#isSpent;
      yield* this.#runCalls(calls, refuses);
      const last = this.#lastFinish(reading, finish, round, refuses);
      if (last) {
        yield [last, end];
        return;
      }
    }
  }

  /** Returns how the answer ends after the calls of a round; `undefined`: it continues. `refused`: no call has run. */
  #lastFinish(reading: Round, finish: FinishEvent, round: number, refused: boolean): FinishEvent | undefined {
    if (reading.clientCalls > 0) return finish;
    if (reading.waits) return { ...finish, reason: "stop" };
    if (this.#tokensLeft === 0) return { type: "finish", choice: 0, reason: "length", limit: "max-tokens" };
    const { pauses, limits } = this.#plan;
    if (pauses && (round + 1 >= limits.maxRounds || this.#calls.isOver || this.#isSpent))
      return { type: "finish", choice: 0, reason: "stop", paused: true };
    if (this.#isSpent) return { type: "finish", choice: 0, reason: "length" };
    // The model was told that no further call runs, and calls again.
    return refused && round > limits.maxRounds ? { type: "finish", choice: 0, reason: "length" } : undefined;
  }

  /** Runs calls concurrently, and emits their results in the order of the calls. */
  async *#runCalls(calls: readonly RequestedCall[], refuses: boolean): AsyncGenerator<Batch> {
    const messages = [...this.#messages];
    const running = calls.map((call) => this.#calls.run(call, messages, refuses));
    const results: ToolMessage[] = [];
    for (const [index, call] of calls.entries()) {
      const result = await running[index];
      if (this.#signal.aborted || !result) return;
      if (result.kind === "search") this.#citations.add(result.results);
      const event: HostedResultEvent = { type: "hosted-result", choice: 0, ...identityOf(call), result };
      results.push({
        role: "tool",
        content: resultContent(result),
        toolCallId: call.id,
        name: modelName(identityOf(call)),
        ...(isFailed(result) && { isError: true }),
      });
      if (call.isIgnored !== true) yield [event];
    }
    this.#messages.splice(this.#placeOfResults(), 0, ...results);
  }

  /** Results follow the last message of the model and its other results. */
  #placeOfResults(): number {
    let place = this.#messages.findLastIndex(({ role }) => role === "assistant") + 1;
    while (this.#messages[place]?.role === "tool") place++;
    return place;
  }

  /** The calls at the end of the conversation that have no result: approved ones, and those of a paused answer. */
  #pendingCalls(functions: ReadonlyMap<string, OfferedFunction>): RequestedCall[] {
    const at = this.#messages.findLastIndex(({ role }) => role === "assistant");
    const message = this.#messages[at];
    if (message?.role !== "assistant" || typeof message.content !== "object" || message.content === null) return [];
    const answered = new Set(this.#messages.slice(at + 1).map((one) => (one.role === "tool" ? one.toolCallId : "")));
    return message.content.flatMap((part): RequestedCall[] => {
      const offered = part.type === "tool-call" ? functions.get(part.name) : undefined;
      if (part.type !== "tool-call" || !offered || answered.has(part.id)) return [];
      this.#ids.add(part.id);
      return [{ id: part.id, offered, arguments: part.arguments, isApproved: offered.needsApproval }];
    });
  }

  get #isSpent(): boolean {
    return this.#plan.limits.isSpent?.() === true;
  }

  get #tokensLeft(): number | undefined {
    const { maxTokens } = this.#request.limits;
    return maxTokens && Math.max(0, maxTokens - (this.#usage?.completionTokens ?? 0));
  }

  /** A forced call is forced once. */
  #roundRequest(functions: ReadonlyMap<string, OfferedFunction>, isFirst: boolean): GenerationRequest {
    const { hostedTools: _, passthrough, toolChoice: requested, tools = [], ...rest } = this.#request;
    const toolChoice = requested && (isFirst ? requested : unforced(requested));
    const maxTokens = this.#tokensLeft;
    const hosted = Array.from(
      functions,
      ([
        name,
        {
          function: { description, parameters },
        },
      ]): Tool => ({
        name,
        ...(description !== undefined && { description }),
        ...(parameters !== undefined && { parameters }),
      }),
    );
    // The client's JSON lacks the calls and results, so no upstream may use it. It still says that `extra` is of another API than chat.
    const foreign =
      passthrough && passthrough.dialect !== "chat" ? { ...passthrough, dialect: "hosted-tools" } : undefined;
    return {
      ...rest,
      ...(foreign && { passthrough: foreign }),
      prompt: { ...this.#prompt, messages: [...this.#messages], ...this.#template(isFirst) },
      tools: [...tools, ...hosted],
      limits: { ...rest.limits, ...(maxTokens !== undefined && { maxTokens }) },
      ...(toolChoice && { toolChoice }),
    };
  }

  /** Only the first round continues the client's beginning of the answer. */
  #template(isFirst: boolean): Pick<ChatPrompt, "template"> | undefined {
    if (isFirst) return undefined;
    const { continueFinalMessage: _, addGenerationPrompt: __, ...template } = this.#prompt.template;
    return { template };
  }
}

interface OpenCall {
  readonly id: string;
  readonly offered: OfferedFunction;
  readonly chunks: string[];
  /** OpenAI ignores calls beyond `max_tool_calls`: they have no events. */
  readonly isIgnored: boolean;
}

interface RoundCounts {
  /** The number of the client's calls in earlier rounds. */
  readonly clientCalls: number;
  /** How many hosted calls `max_tool_calls` allows further. */
  readonly callsLeft: number;
}

/** Reads the events of one round: calls of hosted functions become events of hosted calls, the end waits. */
class Round {
  readonly calls: RequestedCall[] = [];
  /** A call waits for the client's approval. */
  waits = false;
  clientCalls = 0;
  finish: FinishEvent | undefined;
  end: EndEvent | undefined;
  usage: Usage | undefined;
  hasStarted: boolean;
  readonly #functions: ReadonlyMap<string, OfferedFunction>;
  readonly #ids: Set<string>;
  readonly #before: RoundCounts;
  readonly #citations: CitationFinder;
  readonly #accumulator = new Accumulator();
  /** The hosted call that is being written; null: the client's. */
  #open: OpenCall | null = null;

  /** `ids`: of all calls of the answer. */
  constructor(
    functions: ReadonlyMap<string, OfferedFunction>,
    ids: Set<string>,
    before: RoundCounts,
    citations: CitationFinder,
    hasStarted: boolean,
  ) {
    this.#functions = functions;
    this.#ids = ids;
    this.#before = before;
    this.#citations = citations;
    this.hasStarted = hasStarted;
  }

  /** `before`: the usage of earlier rounds. */
  read(batch: Batch, before: Usage | undefined): GenerationEvent[] {
    const out: GenerationEvent[] = [];
    for (const event of batch) this.#event(event, before, out);
    return out;
  }

  /** What the model has said and called. */
  message(): AssistantMessage {
    const [choice] = this.#accumulator.result().choices;
    return { role: "assistant", content: assistantContent((choice?.parts ?? []).flatMap(messagePart)) };
  }

  #event(event: GenerationEvent, before: Usage | undefined, out: GenerationEvent[]): void {
    if (event.type !== "text-delta" && event.type !== "usage" && event.type !== "markup")
      for (const annotation of this.#citations.endPart()) out.push({ type: "annotation", choice: 0, annotation });
    switch (event.type) {
      case "start":
        if (!this.hasStarted) out.push(event);
        this.hasStarted = true;
        return;
      case "end":
        this.end = event;
        return;
      case "finish":
        this.finish = event;
        return;
      case "usage":
        this.usage = before ? sum(before, event.usage) : event.usage;
        out.push({ ...event, usage: this.usage });
        return;
      case "tool-call-start": {
        const id = this.#distinct(event.id);
        const offered = this.#functions.get(event.name);
        const call = id === event.id ? event : { ...event, id };
        this.#accumulator.add([call]);
        const isIgnored = this.calls.length >= this.#before.callsLeft;
        this.#open = offered ? { id, offered, chunks: [], isIgnored } : null;
        if (!offered) out.push({ ...call, index: this.#before.clientCalls + this.clientCalls++ });
        else if (!offered.needsApproval && !isIgnored)
          out.push({ type: "hosted-call-start", choice: 0, ...identityOf({ id, offered, arguments: "" }) });
        return;
      }
      case "tool-call-delta":
        this.#accumulator.add([event]);
        if (!this.#open) out.push({ ...event, index: this.#before.clientCalls + this.clientCalls - 1 });
        else {
          this.#open.chunks.push(event.arguments);
          if (!this.#open.offered.needsApproval && !this.#open.isIgnored)
            out.push({ type: "hosted-call-delta", choice: 0, id: this.#open.id, arguments: event.arguments });
        }
        return;
      case "tool-call-end":
        this.#accumulator.add([event]);
        if (!this.#open) out.push({ ...event, index: this.#before.clientCalls + this.clientCalls - 1 });
        else this.#endCall(this.#open, out);
        return;
    }
    if ("choice" in event || event.type === "extra") this.#accumulator.add([event]);
    out.push(event);
    if (event.type === "text-delta")
      for (const annotation of this.#citations.read(event.text))
        out.push({ type: "annotation", choice: 0, annotation });
  }

  #endCall({ id, offered, chunks, isIgnored }: OpenCall, out: GenerationEvent[]): void {
    const call: RequestedCall = { id, offered, arguments: chunks.join(""), ...(isIgnored && { isIgnored }) };
    this.#open = null;
    if (isIgnored) this.calls.push(call);
    else if (offered.needsApproval) {
      this.waits = true;
      out.push({ type: "hosted-approval", choice: 0, ...identityOf(call), arguments: call.arguments });
    } else {
      out.push({ type: "hosted-call-end", choice: 0, id });
      this.calls.push(call);
    }
  }

  /** Some servers give the same id to the first call of every answer. */
  #distinct(id: string): string {
    let distinct = id;
    for (let number = 1; this.#ids.has(distinct); number++) distinct = `${id}_${number}`;
    this.#ids.add(distinct);
    return distinct;
  }
}

function identityOf({ id, offered: { tool, function: one } }: RequestedCall): HostedCallIdentity {
  return { id, kind: tool.kind, tool: tool.name, name: one.name };
}

/** The events of a call of an earlier answer, which runs now. */
function callEvents(call: RequestedCall): Batch {
  const { id } = call;
  return [
    { type: "hosted-call-start", choice: 0, ...identityOf(call), ...(call.isApproved && { approvalId: id }) },
    { type: "hosted-call-delta", choice: 0, id, arguments: call.arguments },
    { type: "hosted-call-end", choice: 0, id },
  ];
}

/** The lists of the MCP servers' functions. */
function listsOf(offered: readonly OfferedTool[]): GenerationEvent[] {
  return offered.flatMap(({ tool, functions }): GenerationEvent[] =>
    tool.kind === "mcp" && tool.options.server?.isListed !== true
      ? [{ type: "hosted-functions", choice: 0, id: `list_${tool.name}`, tool: tool.name, functions }]
      : [],
  );
}

function unforced(choice: ToolChoice): ToolChoice {
  if (choice.type === "required" || choice.type === "named") return { type: "auto" };
  return choice.type === "allowed" ? { ...choice, mode: "auto" } : choice;
}

/** Returns a part of an answer as a part of a message. */
function messagePart(part: GeneratedPart): AssistantPart[] {
  switch (part.type) {
    case "text":
      return part.text === ""
        ? []
        : [{ type: "text", text: part.text, ...(part.phase !== undefined && { phase: part.phase }) }];
    case "refusal":
      return [{ type: "refusal", refusal: part.refusal }];
    case "reasoning": {
      const { summary, ...rest } = part;
      return [{ ...rest, ...(summary.length > 0 && { summary }) }];
    }
    case "tool-call": {
      const { type, id, name, arguments: text, kind, namespace, state } = part;
      const own = {
        ...(kind === "custom" && { kind }),
        ...(namespace !== undefined && { namespace }),
        ...(state && { state }),
      };
      return [{ type, id, name, arguments: text, ...own }];
    }
    default:
      return [];
  }
}

/** Adds the usage of a round to that of the rounds before it. */
function sum(before: Usage, usage: Usage): Usage {
  const details = (one: Readonly<Record<string, number>> = {}, other: Readonly<Record<string, number>> = {}) => {
    const added: Record<string, number> = { ...one };
    for (const [name, count] of Object.entries(other)) added[name] = (added[name] ?? 0) + count;
    return added;
  };
  const total =
    before.totalTokens === undefined || usage.totalTokens === undefined
      ? undefined
      : before.totalTokens + usage.totalTokens;
  return {
    promptTokens: before.promptTokens + usage.promptTokens,
    completionTokens: before.completionTokens + usage.completionTokens,
    ...(total !== undefined && { totalTokens: total }),
    ...((before.promptDetails ?? usage.promptDetails) && {
      promptDetails: details(before.promptDetails, usage.promptDetails),
    }),
    ...((before.completionDetails ?? usage.completionDetails) && {
      completionDetails: details(before.completionDetails, usage.completionDetails),
    }),
  };
}
