import type { GenerationEvent, GenerationFailure } from "../../../wire/core/events.ts";
import { FailureError, loggedError, shownWarnings } from "../../../wire/core/failure.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";
import type { Sampling } from "../../../wire/core/request.ts";
import { queueFull } from "../../lifecycle/fair-queue.ts";
import type { AnswerCheckPlan } from "../preparing/constraint-plan.ts";
import type { PreparedRequest, PromptInput } from "../preparing/prepared-request.ts";
import type { GenerateTaskMessage, StepMessage } from "../protocol.ts";
import type { ImageOrigin } from "../vision/encoder-process.ts";
import { isRow, shownRow, type PlacedImage } from "../vision/prompt-images.ts";
import { EventLoopShare, type AsyncSteps } from "./event-loop-share.ts";
import type { Prepared, PreparingThread } from "./preparing-thread.ts";

/** The prompts of a request as tokens, and the images in each of them. */
export interface TokenizedPrompts {
  readonly prompts: readonly (readonly number[])[];
  readonly images: readonly (readonly PlacedImage[])[];
}

export interface IntakeOptions {
  readonly thread: PreparingThread;
  /** Requests of one owner that may be prepared at the same time. Further ones are rejected. */
  readonly limit: number;
  /** Adds the images of the prompt to `images`. */
  readonly tokenize: (prompt: PromptInput, images: PlacedImage[], origin: ImageOrigin) => AsyncSteps<number[]>;
  /** Tokenizes a text to which a bias applies. */
  readonly tokensOfText: (text: string) => readonly number[];
  /** Takes a prepared request with the tokens of its prompts. */
  readonly add: (request: PreparedRequest, prompts: TokenizedPrompts, owner?: string) => void;
  /** Sends the prompts of an inspected request. */
  readonly inspect: (
    id: number,
    inputs: readonly PromptInput[],
    prompts: readonly (readonly number[])[],
  ) => AsyncSteps<void>;
  readonly refuse: (id: number, failure: GenerationFailure) => void;
  /** A request was cancelled while it was prepared. */
  readonly onCancelled: () => void;
  readonly log: LogListener;
}

/**
 * What happens to a request before the scheduler and after it: the preparing thread renders its prompts and makes its grammar, and checks
 * its answer. Prompts are tokenized here, because the model is here: short texts in a share of this thread's time, long ones in another
 * thread.
 */
export class Intake {
  readonly #options: IntakeOptions;
  /** The owners of requests that are being prepared and not cancelled. */
  readonly #preparing = new Map<number, string | undefined>();
  readonly #checks = new Map<number, AnswerCheck>();
  /** The chunks of requests that have not arrived completely. */
  readonly #chunks = new Map<number, string[]>();
  readonly #share = new EventLoopShare();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Number of requests that are being prepared. */
  get waiting(): number {
    return this.#preparing.size;
  }

  /** Adds a chunk of a long request. */
  addChunk(id: number, text: string): void {
    const chunks = this.#chunks.get(id);
    if (chunks) chunks.push(text);
    else this.#chunks.set(id, [text]);
  }

  /** Prepares a request and passes it to the scheduler. */
  async accept({ id, requestId, owner, requestJson: asked }: GenerateTaskMessage): Promise<void> {
    const { add, refuse, log, tokensOfText } = this.#options;
    const arrived = performance.now();
    try {
      const ready = await this.#prepare(id, asked, owner, (prepared) =>
        this.#tokenizeAndInspect(id, prepared, this.#originOf(id, owner)),
      );
      if (ready === null) return;
      const { prepared, result: prompts } = ready;
      for (const warning of shownWarnings(prepared.warnings)) log(`${requestId}: ${warning}`, "warn");
      if (prepared.check)
        this.#checks.set(id, new AnswerCheck(prepared.check, (...text) => void this.#check(requestId, ...text)));
      const sampling = withTextBias(prepared.request.sampling, tokensOfText);
      add({ ...prepared.request, sampling, id, requestId, preparingMs: performance.now() - arrived }, prompts, owner);
    } catch (error) {
      refuse(id, failureOf(error));
    }
  }

  /** The tokens of a request's prompts, concatenated; `null` if it was cancelled. Rejects with `FailureError`. */
  async tokensOf(id: number, asked: string, owner?: string): Promise<readonly number[] | null> {
    const { tokenize } = this.#options;
    const origin = this.#originOf(id, owner);
    return this.read(id, asked, owner, function* (prompts) {
      const tokens: number[] = [];
      for (const prompt of prompts)
        for (const token of yield* tokenize(prompt, [], origin)) tokens.push(isRow(token) ? shownRow : token);
      return tokens;
    });
  }

  /** The result of `work` with a request's prompts; `null` if it was cancelled. Rejects with `FailureError`. */
  async read<T extends object>(
    id: number,
    asked: string,
    owner: string | undefined,
    work: (prompts: readonly PromptInput[]) => AsyncSteps<T>,
  ): Promise<T | null> {
    try {
      return (await this.#prepare(id, asked, owner, ({ request }) => work(request.prompts)))?.result ?? null;
    } catch (error) {
      throw new FailureError(failureOf(error));
    }
  }

  cancel(id: number): void {
    this.#checks.delete(id);
    this.#chunks.delete(id);
    if (!this.#preparing.delete(id)) return;
    this.#options.thread.onCancelled();
    this.#options.onCancelled();
  }

  /** Is called with all events that are sent to the server. */
  onResults(results: StepMessage["results"]): void {
    if (this.#checks.size === 0) return;
    for (const [id, , events] of results) {
      this.#checks.get(id)?.read(events);
      if (events.at(-1)?.type === "end") this.#checks.delete(id);
    }
  }

  /** Prepares a request and runs `work` with it. Resolves with `null` if it was cancelled. */
  async #prepare<T extends object>(
    id: number,
    lastChunk: string,
    owner: string | undefined,
    work: (prepared: Prepared) => AsyncSteps<T>,
  ): Promise<{ prepared: Prepared; result: T } | null> {
    const { thread, limit } = this.#options;
    const chunks = [...(this.#chunks.get(id) ?? []), lastChunk];
    this.#chunks.delete(id);
    const ofOwner =
      this.#preparing.size < limit ? 0 : [...this.#preparing.values()].filter((other) => other === owner).length;
    if (ofOwner >= limit) throw new FailureError(queueFull(ofOwner, "choices"));
    this.#preparing.set(id, owner);
    try {
      const isWanted = (): boolean => this.#preparing.has(id);
      const prepared = await thread.prepare(chunks, isWanted);
      if (!prepared) return null;
      const result = await this.#share.run(whileWanted(work(prepared), isWanted));
      return result && { prepared, result };
    } catch (error) {
      if (!this.#preparing.has(id)) return null;
      throw error;
    } finally {
      this.#preparing.delete(id);
    }
  }

  #originOf(id: number, owner: string | undefined): ImageOrigin {
    return { owner, isWanted: () => this.#preparing.has(id) };
  }

  *#tokenizeAndInspect(id: number, { request }: Prepared, origin: ImageOrigin): AsyncSteps<TokenizedPrompts> {
    const { tokenize, inspect } = this.#options;
    const prompts: number[][] = [];
    const images: PlacedImage[][] = [];
    for (const prompt of request.prompts) {
      const ofPrompt: PlacedImage[] = [];
      prompts.push(yield* tokenize(prompt, ofPrompt, origin));
      images.push(ofPrompt);
    }
    if (request.inspected) yield* inspect(id, request.prompts, prompts);
    return { prompts, images };
  }

  async #check(requestId: string, ...[what, json, schema]: Parameters<CheckText>): Promise<void> {
    const { thread, log } = this.#options;
    try {
      const errors = await thread.check(json, schema);
      if (errors === null) log(`${requestId}: ${what}: valid, as checked beyond the grammar`, "info");
      else log(`${requestId}: ${what}: not valid: ${errors}`, "warn");
    } catch (error) {
      log(`${requestId}: ${what}: could not be checked (${failureOf(error).kind})`, "warn");
    }
  }
}

/** The steps of `work` until the request is cancelled; then `null`. */
function* whileWanted<T extends object>(work: AsyncSteps<T>, isWanted: () => boolean): AsyncSteps<T | null> {
  const steps: AsyncSteps<T | null> = work;
  for (;;) {
    const step = isWanted() ? steps.next() : steps.return(null);
    if (step.done === true) return step.value;
    yield step.value;
  }
}

/** Converts biases of texts to biases of their tokens. A bias of the token itself takes precedence, and so does a later text. */
function withTextBias(
  { textBias, logitBias, ...sampling }: Sampling,
  tokensOf: (text: string) => readonly number[],
): Sampling {
  if (textBias === undefined) return logitBias ? { ...sampling, logitBias } : sampling;
  const ofTexts = textBias.flatMap(({ text, bias }) => tokensOf(text).map((token) => [token, bias] as const));
  return { ...sampling, logitBias: { ...Object.fromEntries(ofTexts), ...logitBias } };
}

function failureOf(error: unknown): GenerationFailure {
  if (error instanceof FailureError) return error.failure;
  return {
    message: "The request could not be prepared for the model.",
    status: 500,
    kind: "internal",
    cause: loggedError(error),
  };
}

/** Checks a JSON text against a schema. `what`: the name of the text in the log. */
type CheckText = (what: string, json: string, schema: JsonSchema) => void;

/**
 * Collects an answer whose grammar cannot enforce all of its schemas, and passes each complete JSON text on to be checked. The result is
 * logged; the answer does not change.
 */
class AnswerCheck {
  readonly #plan: AnswerCheckPlan;
  readonly #check: CheckText;
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, { readonly name: string; arguments: string }>();

  constructor(plan: AnswerCheckPlan, check: CheckText) {
    this.#plan = plan;
    this.#check = check;
  }

  read(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      if (event.type === "text-delta") {
        this.#texts.set(event.choice, (this.#texts.get(event.choice) ?? "") + event.text);
      } else if (event.type === "tool-call-start") {
        this.#calls.set(`${event.choice} ${event.index}`, { name: event.name, arguments: "" });
      } else if (event.type === "tool-call-delta") {
        const call = this.#calls.get(`${event.choice} ${event.index}`);
        if (call) call.arguments += event.arguments;
      } else if (event.type === "tool-call-end" && event.status === "succeeded") {
        const call = this.#calls.get(`${event.choice} ${event.index}`);
        const schema = this.#plan.tools.find((tool) => tool.name === call?.name)?.parameters;
        if (call && schema !== undefined) this.#check(`the arguments of '${call.name}'`, call.arguments, schema);
      } else if (event.type === "finish" && event.reason === "stop" && this.#plan.schema !== undefined) {
        this.#check(`choice ${event.choice}`, this.#texts.get(event.choice) ?? "", this.#plan.schema);
      }
    }
  }
}
