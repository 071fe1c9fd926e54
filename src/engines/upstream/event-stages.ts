import type { Format } from "../../text/formats/format.ts";
import { TextReader, unknownToolsWarning } from "../../text/formats/text-reader.ts";
import { ChoiceAssembler } from "../../wire/core/choice-assembler.ts";
import type {
  ExtraEvent,
  FinishEvent,
  GenerationEvent,
  GenerationFailure,
  TextDeltaEvent,
  TokenLogprob,
  Usage,
} from "../../wire/core/events.ts";
import type { Tool } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { callsWithoutCall } from "../../wire/apis/tolerant/read-failure.ts";
import { JsonAnswer } from "../../wire/apis/tolerant/json-answer.ts";
import { type RepairId, sentenceOfRepair } from "../../wire/apis/tolerant/repairs.ts";
import { MarkerReader } from "../../text/formats/marker-reader.ts";
import { CustomInput } from "../../text/formats/reading/custom-input.ts";
import { cancellable } from "../../wire/core/cancellable.ts";
import { mergeBatches } from "../../wire/core/merge-batches.ts";
import { Relay } from "../../wire/core/relay.ts";
import { findTruncation, truncationFailure, type TruncationMode } from "../../wire/apis/adapt/truncation.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import { withWarnings } from "./judged-answer.ts";

/** Reads a choice's text: in a known format, or in the format whose markers appear first. */
interface ChoiceTextReader {
  push(text: string, logprob?: TokenLogprob): GenerationEvent[];
  end(): GenerationEvent[];
  readonly unknownTools: ReadonlySet<string>;
}

/** Changes the events of an answer. */
export interface EventStage {
  /** Returns the events that replace these. */
  readonly transform: (events: GenerationEvent[]) => GenerationEvent[];
}

/**
 * Parses tool calls and reasoning that an upstream left in the text. Calls that the upstream did send keep their indices; calls in the
 * text get the next ones.
 */
export class TextStage implements EventStage {
  readonly #format: Format | "auto";
  readonly #newCallId: () => string;
  readonly #tools: readonly Tool[];
  readonly #callsAllowed: boolean;
  readonly #separateReasoning: boolean;
  readonly #warn: (warning: string) => void;
  readonly #note: (repair: RepairId) => void;
  #choices = new Map<number, Choice>();

  /** `warn` is called for calls that remain text because the request does not have the tool; `note` for each repair. */
  constructor(
    format: Format | "auto",
    request: GenerationRequest,
    newCallId: () => string,
    warn: (warning: string) => void = () => {},
    note: (repair: RepairId) => void = () => {},
  ) {
    this.#format = format;
    this.#newCallId = newCallId;
    this.#separateReasoning = request.reasoning?.inText !== true;
    this.#warn = warn;
    this.#note = note;
    this.#tools = request.tools ?? [];
    this.#callsAllowed = this.#tools.length > 0 && request.toolChoice?.type !== "none";
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const out: GenerationEvent[] = [];
    for (const event of events) {
      if (!("choice" in event) || event.type === "extra" || event.type === "progress") {
        out.push(event);
        continue;
      }
      const choice = this.#choice(event.choice);
      const { reader, assembler } = choice;
      if (event.type === "text-delta") for (const token of tokensOf(event)) assembler.add(reader.push(...token));
      else if (event.type !== "finish") assembler.add([event], "source");
      else if (!this.#finish(event, choice)) {
        out.push(...assembler.take(), {
          type: "end",
          end: { kind: "upstream-error", failure: callsWithoutCall() },
        });
        return out;
      }
      for (const replaced of assembler.take()) out.push(replaced);
    }
    return out;
  };

  /** Returns false if the finish reason announces calls, and there are neither calls nor a text. */
  #finish({ reason, stop }: FinishEvent, { reader, assembler }: Choice): boolean {
    assembler.add(reader.end());
    const warning = unknownToolsWarning(reader.unknownTools);
    if (warning !== null) this.#warn(warning);
    const lacksCalls = !assembler.hasCalls && (reason === "tool-calls" || reason === "function-call");
    if (lacksCalls && !assembler.hasText) return false;
    if (lacksCalls) this.#note("finish-without-calls");
    assembler.finish(lacksCalls ? "stop" : reason, stop);
    return true;
  }

  #choice(number: number): Choice {
    let choice = this.#choices.get(number);
    if (!choice) {
      const options = {
        choice: number,
        newCallId: this.#newCallId,
        tools: this.#tools,
        callsAllowed: this.#callsAllowed,
        separateReasoning: this.#separateReasoning,
      };
      const reader =
        this.#format === "auto" ? new MarkerReader(options) : new TextReader({ ...options, format: this.#format });
      this.#choices.set(number, (choice = { reader, assembler: new ChoiceAssembler(number) }));
    }
    return choice;
  }
}

interface Choice {
  readonly reader: ChoiceTextReader;
  readonly assembler: ChoiceAssembler;
}

/** Each token of a delta with its logprob, if the tokens make up the text; else the text with the last logprob. */
function tokensOf({
  text,
  logprobs = [],
}: TextDeltaEvent): readonly (readonly [text: string, logprob?: TokenLogprob])[] {
  if (logprobs.length === 0) return [[text]];
  if (logprobs.map(({ token }) => token).join("") === text) return logprobs.map((logprob) => [logprob.token, logprob]);
  const last = logprobs.at(-1);
  return last ? [[text, last]] : [[text]];
}

/**
 * Converts function calls to calls of custom tools, for a server that got functions in their place, or answers with functions anyway. The
 * argument `input` becomes the text of the call while it streams. Arguments of another form become the text unchanged.
 */
export class CustomCalls implements EventStage {
  readonly #names: ReadonlySet<string>;
  /** Calls whose arguments are streaming, by choice and index. */
  readonly #open = new Map<string, CustomInput>();

  /** `names`: of the request's custom tools. */
  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] =>
    events.flatMap((event) => this.#changed(event));

  #changed(event: GenerationEvent): readonly GenerationEvent[] {
    switch (event.type) {
      case "tool-call-start": {
        if (event.kind === "custom" || !this.#names.has(event.name)) return [event];
        this.#open.set(keyOf(event), new CustomInput());
        return [{ ...event, kind: "custom" }];
      }
      case "tool-call-delta": {
        const input = this.#open.get(keyOf(event));
        return input ? withText(event, input.push(event.arguments)) : [event];
      }
      case "tool-call-end": {
        const input = this.#open.get(keyOf(event));
        if (!input) return [event];
        this.#open.delete(keyOf(event));
        const { raw: _, ...end } = event;
        const { choice, index } = end;
        const rest = withText({ type: "tool-call-delta", choice, index, arguments: "" }, input.end());
        return [...rest, { ...end, status: "succeeded" }];
      }
      default:
        return [event];
    }
  }
}

/** Gives calls the client's names of tools, where the server got others. */
export class ToolNames implements EventStage {
  readonly #names: ReadonlyMap<string, string>;

  /** `names`: the client's, by those that the server got. */
  constructor(names: ReadonlyMap<string, string>) {
    this.#names = names;
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] =>
    events.map((event) => {
      const name = event.type === "tool-call-start" ? this.#names.get(event.name) : undefined;
      return name === undefined ? event : ({ ...event, name } as GenerationEvent);
    });
}

/**
 * Leaves the first call of each choice, for a client that wants at most one (`parallel_tool_calls: false`): llama.cpp's server lets its model
 * make several.
 */
export class OneCall implements EventStage {
  readonly #note: (repair: RepairId) => void;

  constructor(note: (repair: RepairId) => void) {
    this.#note = note;
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const left = events.filter((event) => !("index" in event && event.type.startsWith("tool-call") && event.index > 0));
    if (left.length < events.length) this.#note("second-call");
    return left;
  };
}

function keyOf({ choice, index }: { readonly choice: number; readonly index: number }): string {
  return `${choice}:${index}`;
}

function withText(
  event: Extract<GenerationEvent, { type: "tool-call-delta" }>,
  text: string,
): readonly GenerationEvent[] {
  return text === "" ? [] : [{ ...event, arguments: text }];
}

/** Leaves only the JSON of an answer that must be JSON. What else there is gets a warning header, if no headers were sent. */
export class JsonStage implements EventStage {
  readonly #answer: JsonAnswer;
  #hasOtherText = false;

  /** `note` is called for each repair. */
  constructor({ stream }: Pick<GenerationRequest, "stream">, note: (repair: RepairId) => void) {
    this.#answer = new JsonAnswer({
      isWhole: !stream,
      note: (repair) => {
        note(repair);
        this.#hasOtherText ||= repair === "json-other-text";
      },
    });
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const left = this.#answer.transform(events);
    return this.#hasOtherText ? [...withWarnings(left, [sentenceOfRepair("json-other-text") ?? ""])] : left;
  };
}

/**
 * Compares the reported usage with the prompt's texts. If the server has cut the prompt, the answer ends with a failure in place of its
 * usage, or is sent with a warning.
 */
export class TruncationStage implements EventStage {
  readonly #request: GenerationRequest;
  readonly #profile: ServerProfile;
  readonly #mode: "error" | "warn";
  readonly #upstream: string;
  readonly #report: (failure: GenerationFailure) => void;
  /** The client did not ask for usage. */
  readonly #isUsageOurs: boolean;
  #isOver = false;
  #isReported = false;

  /** `report` is called once, for a prompt that was cut. */
  constructor(options: {
    readonly request: GenerationRequest;
    readonly profile: ServerProfile;
    readonly mode: "error" | "warn";
    readonly upstream: string;
    readonly report: (failure: GenerationFailure) => void;
  }) {
    const { request, profile, mode, upstream, report } = options;
    this.#request = request;
    this.#profile = profile;
    this.#isUsageOurs = request.stream && asksForUsage(request, profile, mode);
    this.#mode = mode;
    this.#upstream = upstream;
    this.#report = report;
  }

  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    if (this.#isOver) return [];
    const usage = events.find((event) => event.type === "usage")?.usage;
    const truncation = usage && !this.#isReported && findTruncation(this.#request, usage, this.#profile);
    const sent = this.#isUsageOurs ? events.filter(({ type }) => type !== "usage") : events;
    if (!truncation) return sent;
    this.#isReported = true;
    const failure = truncationFailure(truncation, this.#upstream);
    this.#report(failure);
    if (this.#mode === "warn") return [...withWarnings(sent, [failure.message])];
    this.#isOver = true;
    const end: GenerationEvent = { type: "end", end: { kind: "upstream-error", failure } };
    // No part of a whole answer has been sent: it is replaced by the failure.
    return this.#request.stream ? [...sent.slice(0, firstOf(sent)), end] : [end];
  };
}

/** Whether usage is requested although the client does not want it: of a server that cuts prompts, which usage shows. */
export function asksForUsage(
  { wantsUsage }: GenerationRequest,
  { truncates }: ServerProfile,
  mode: TruncationMode,
): boolean {
  return !wantsUsage && truncates === true && mode !== "allow";
}

/** The index of the first event after the choices: usage or the end. */
function firstOf(events: readonly GenerationEvent[]): number {
  const at = events.findIndex(({ type }) => type === "usage" || type === "end");
  return at === -1 ? events.length : at;
}

/**
 * Merges concurrent generations of one choice each into one generation of several choices, for upstreams that take only `n: 1`.
 * `perPrompt`: the number of consecutive generations with the same prompt. Usage counts each prompt once and sums the completions. Extra
 * members outside of the choices appear once. The first failure ends all.
 */
export function severalChoices(
  streams: readonly AsyncIterable<readonly GenerationEvent[], undefined>[],
  perPrompt: number,
): AsyncIterable<readonly GenerationEvent[]> {
  const choices = streams.map((stream) => stream[Symbol.asyncIterator]());
  return cancellable((signal) => {
    const leave = (): void => {
      for (const choice of choices) void choice.return?.();
    };
    signal.addEventListener("abort", leave, { once: true });
    return merged(choices, perPrompt);
  });
}

/**
 * Runs a generation. If it fails before any output and `other` then returns another one, that one takes its place, unseen by the client.
 */
export function replaceable(
  first: () => AsyncIterable<readonly GenerationEvent[]>,
  other: () => AsyncIterable<readonly GenerationEvent[]> | null,
): AsyncIterable<readonly GenerationEvent[]> {
  return new Relay(async (relay) => {
    const batch = await relay.ask(first);
    const [end] = batch;
    const isFailed = batch.length === 1 && end?.type === "end" && "failure" in end.end;
    const replacement = isFailed && !relay.hasEnded ? other() : null;
    return replacement ? relay.ask(() => replacement) : batch;
  });
}

async function* merged(
  choices: readonly AsyncIterator<readonly GenerationEvent[], undefined>[],
  perPrompt: number,
): AsyncGenerator<readonly GenerationEvent[]> {
  /** The last usage of each stream. */
  const usages = new Map<number, Usage>();
  const seenExtras = new Set<string>();
  for await (const [choice, batch] of mergeBatches(choices)) {
    const events: GenerationEvent[] = [];
    for (const event of batch) {
      if (event.type === "usage") usages.set(choice, event.usage);
      else if (event.type === "extra" && event.choice === undefined) events.push(...unseen(event, seenExtras));
      else if (event.type !== "end") events.push("choice" in event ? { ...event, choice } : event);
      else if (event.end.kind !== "done") {
        // Leaving the merge returns the others.
        yield [...events, event];
        return;
      }
    }
    if (events.length > 0) yield events;
  }
  yield [...usageOfAll(usages, choices.length, perPrompt), { type: "end", end: { kind: "done" } }];
}

/** The members of an extra event that no generation has sent yet with the same value. */
function unseen(event: ExtraEvent, seen: Set<string>): ExtraEvent[] {
  const members = Object.entries(event.value).filter(([name, value]) => {
    const text = JSON.stringify([event.place, event.dialect, name, value]);
    return !seen.has(text) && seen.add(text);
  });
  return members.length === 0 ? [] : [{ ...event, value: Object.fromEntries(members) }];
}

/** None if a generation sent no usage: a partial sum would be wrong. */
function usageOfAll(byChoice: ReadonlyMap<number, Usage>, count: number, perPrompt: number): GenerationEvent[] {
  const first = byChoice.get(0);
  if (!first || byChoice.size < count) return [];
  const usages = [...byChoice.values()];
  const prompts = [...byChoice].filter(([choice]) => choice % perPrompt === 0);
  const completionDetails: Record<string, number> = {};
  for (const { completionDetails: details = {} } of usages) {
    for (const [name, value] of Object.entries(details))
      completionDetails[name] = (completionDetails[name] ?? 0) + value;
  }
  const usage: Usage = {
    promptTokens: prompts.reduce((sum, [, { promptTokens }]) => sum + promptTokens, 0),
    completionTokens: usages.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
    ...(first.promptDetails && { promptDetails: first.promptDetails }),
    ...(Object.keys(completionDetails).length > 0 && { completionDetails }),
  };
  return [{ type: "usage", usage }];
}
