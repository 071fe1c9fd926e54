import type { GenerationFailure, GenerationEvent } from "../../../core/events.ts";
import { FailureError } from "../../../core/failure.ts";
import { shownWarnings } from "../../../core/shown-warnings.ts";
import type { Observe } from "../../../core/observe.ts";
import type { Sampling } from "../../../core/request.ts";
import type { PreparedRequest, PromptInput } from "../preparing/prepared-request.ts";
import type { GenerateMessage, StepMessage } from "../protocol.ts";
import type { Prepared, PreparingThread } from "./preparing-thread.ts";
import { queueFull } from "./slot/task-queue.ts";
import { EventLoopShare, type AsyncSteps } from "./event-loop-share.ts";
import type { JsonSchema } from "../../../core/message.ts";
import type { AnswerCheckPlan } from "../preparing/constraint-plan.ts";

export interface IntakeOptions {
  readonly thread: PreparingThread;
  /** Requests of one owner that may be in preparation; one more is refused. */
  readonly limit: number;
  /** Tokenizes a prompt, in steps. */
  readonly tokenize: (prompt: PromptInput) => AsyncSteps<number[]>;
  /** The tokens of a text that a bias is for. */
  readonly tokensOfText: (text: string) => readonly number[];
  /** Takes a request that is ready, with its prompts' tokens. */
  readonly add: (request: PreparedRequest, prompts: readonly (readonly number[])[], owner?: string) => void;
  /** Tells the prompts of a request that somebody wants to see, in steps. */
  readonly inspect: (
    id: number,
    inputs: readonly PromptInput[],
    prompts: readonly (readonly number[])[],
  ) => AsyncSteps<void>;
  readonly refuse: (id: number, failure: GenerationFailure) => void;
  /** A request left while it was prepared. */
  readonly onLeft: () => void;
  readonly log: Observe;
}

/**
 * The way to the scheduler and back: the preparing thread prepares requests before they reach it, and checks answers after it.
 * Prompts are tokenized here, where the model is: what is short in a share of this thread's time, what is long in another thread.
 */
export class Intake {
  readonly #options: IntakeOptions;
  /** Requests in preparation whose clients are still there, with their owners. */
  readonly #wanted = new Map<number, string | undefined>();
  readonly #checks = new Map<number, AnswerCheck>();
  readonly #pieces = new Map<number, string[]>();
  readonly #share = new EventLoopShare();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Requests in preparation. */
  get waiting(): number {
    return this.#wanted.size;
  }

  /** A piece of what a request asks, which is still on its way. */
  addChunk(id: number, text: string): void {
    const pieces = this.#pieces.get(id);
    if (pieces) pieces.push(text);
    else this.#pieces.set(id, [text]);
  }

  async accept({ id, requestId, owner, asked }: GenerateMessage): Promise<void> {
    const { add, refuse, log } = this.#options;
    const arrived = performance.now();
    try {
      const ready = await this.#prepare(id, asked, owner, (prepared) => this.#tokensAndShow(id, prepared));
      if (ready === null) return;
      const { prepared, made: prompts } = ready;
      for (const warning of shownWarnings(prepared.warnings)) log(`${requestId}: ${warning}`, "warn");
      if (prepared.check)
        this.#checks.set(id, new AnswerCheck(prepared.check, (...text) => void this.#check(requestId, ...text)));
      const sampling = withTextBias(prepared.request.sampling, this.#options.tokensOfText);
      add({ ...prepared.request, sampling, id, requestId, preparingMs: performance.now() - arrived }, prompts, owner);
    } catch (error) {
      refuse(id, failureOf(error));
    }
  }

  /** The tokens of a request's prompts, one after the other; null: the client left. Rejects with `FailureError`. */
  async tokensOf(id: number, asked: string, owner?: string): Promise<readonly number[] | null> {
    const { tokenize } = this.#options;
    return this.read(id, asked, owner, function* (prompts) {
      const tokens: number[] = [];
      for (const prompt of prompts) for (const token of yield* tokenize(prompt)) tokens.push(token);
      return tokens;
    });
  }

  /** What `work` makes of a request's prompts; null: the client left. Rejects with `FailureError`. */
  async read<T extends object>(
    id: number,
    asked: string,
    owner: string | undefined,
    work: (prompts: readonly PromptInput[]) => AsyncSteps<T>,
  ): Promise<T | null> {
    try {
      return (await this.#prepare(id, asked, owner, ({ request }) => work(request.prompts)))?.made ?? null;
    } catch (error) {
      throw new FailureError(failureOf(error));
    }
  }

  /** What `work` makes of a request; null: the client left, and `cancel` has cleaned up. */
  async #prepare<T extends object>(
    id: number,
    lastPiece: string,
    owner: string | undefined,
    work: (prepared: Prepared) => AsyncSteps<T>,
  ): Promise<{ prepared: Prepared; made: T } | null> {
    const { thread, limit } = this.#options;
    const asked = [...(this.#pieces.get(id) ?? []), lastPiece];
    this.#pieces.delete(id);
    const ofOwner =
      this.#wanted.size < limit ? 0 : [...this.#wanted.values()].filter((other) => other === owner).length;
    if (ofOwner >= limit) throw new FailureError(queueFull(ofOwner));
    this.#wanted.set(id, owner);
    try {
      const isWanted = (): boolean => this.#wanted.has(id);
      const prepared = await thread.prepare(asked, isWanted);
      if (!prepared) return null;
      const made = await this.#share.run(whileWanted(work(prepared), isWanted));
      return made && { prepared, made };
    } finally {
      this.#wanted.delete(id);
    }
  }

  *#tokensAndShow(id: number, { request }: Prepared): AsyncSteps<number[][]> {
    const { tokenize, inspect: show } = this.#options;
    const prompts: number[][] = [];
    for (const prompt of request.prompts) prompts.push(yield* tokenize(prompt));
    if (request.inspected) yield* show(id, request.prompts, prompts);
    return prompts;
  }

  cancel(id: number): void {
    this.#checks.delete(id);
    this.#pieces.delete(id);
    if (!this.#wanted.delete(id)) return;
    this.#options.thread.left();
    this.#options.onLeft();
  }

  /** Called with everything that is sent to the server. */
  passed(results: StepMessage["results"]): void {
    if (this.#checks.size === 0) return;
    for (const [id, , events] of results) {
      this.#checks.get(id)?.read(events);
      if (events.at(-1)?.type === "end") this.#checks.delete(id);
    }
  }

  async #check(requestId: string, ...[what, json, schema]: Parameters<CheckText>): Promise<void> {
    const { thread, log } = this.#options;
    try {
      const errors = await thread.check(json, schema);
      if (errors === null) log(`${requestId}: ${what}: valid, as checked beyond the grammar`, "info");
      else log(`${requestId}: ${what}: not valid: ${errors}`, "warn");
    } catch (error) {
      log(`${requestId}: ${what}: could not be checked: ${failureOf(error).message}`, "warn");
    }
  }
}

/** The steps of a work, as long as somebody wants it; then null. */
function* whileWanted<T extends object>(work: AsyncSteps<T>, isWanted: () => boolean): AsyncSteps<T | null> {
  const steps: AsyncSteps<T | null> = work;
  for (;;) {
    const step = isWanted() ? steps.next() : steps.return(null);
    if (step.done === true) return step.value;
    yield step.value;
  }
}

/** The biases of texts as biases of their tokens; one that is given for the token itself wins, and so does a later text. */
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
    cause: String(error),
  };
}

/** Takes a JSON text that is to be checked by a schema. `what`: its name in the log. */
export type CheckText = (what: string, json: string, schema: JsonSchema) => void;

/**
 * Collects the answer to one request whose grammar cannot enforce all of its schemas, and passes each finished part on to be checked.
 * The result goes to the log; the answer does not change.
 */
export class AnswerCheck {
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
