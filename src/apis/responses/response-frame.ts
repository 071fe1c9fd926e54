import type { SourceIdentity, Usage } from "../../core/events.ts";
import { JsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { AnswerContext } from "../port.ts";
import { nameWithin } from "../../core/qualified-name.ts";
import { responseForms } from "./form.ts";
import type { ResponseForm } from "./form.ts";
import { ResponseIds } from "./ids.ts";
import { toolSearch } from "./call-kind.ts";
import type { CallKind } from "./call-kind.ts";
import type { NumberForm } from "./number-form.ts";
import type { AskedResponse } from "./response-echo.ts";
import { bodyText } from "./body-text.ts";
import { responseUsage } from "./response-usage.ts";
import { sealThought } from "./sealed-thought.ts";
import type { SealedThought } from "./sealed-thought.ts";

/** A response as it stands at one of its events. */
export interface ResponseState {
  readonly event: "created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  readonly output: readonly JsonValue[];
  readonly incompleteReason?: "max_output_tokens" | "content_filter";
  readonly failure?: { readonly code: string; readonly message: string };
  readonly usage?: Usage | undefined;
}

/**
 * What is around the items of one response: who it is, what it repeats of its request, and in which form its profile writes it.
 * `form`: whether it is told as events or as one body.
 */
export class ResponseFrame {
  readonly number: NumberForm;
  /** Makes the characters that hide a delta's length, uniform in [0, 1); undefined: deltas carry none. */
  readonly obfuscate: (() => number) | undefined;
  /** Thoughts are shown as summaries. */
  readonly summarizes: boolean;
  readonly showsLogprobs: boolean;
  readonly keepAlive: ResponseForm["keepAlive"];
  readonly endMark: string;
  /** The events that a stream opens with. */
  readonly opening: readonly ("created" | "queued" | "in_progress")[];
  /** Thoughts with what their maker needs to read them again, by the ids of their items. */
  readonly seals: Record<string, string> = {};
  readonly #context: AnswerContext;
  readonly #asked: AskedResponse;
  readonly #form: ResponseForm;
  readonly #isBody: boolean;
  readonly #ids: ResponseIds;
  readonly #now: () => number;
  #id: string | undefined;
  #created: number;
  #model: string;
  #tier: string | null | undefined;
  /** The response as it ended. */
  #last: ResponseState | undefined;

  constructor(context: AnswerContext, asked: AskedResponse, form: "stream" | "body") {
    this.#context = context;
    this.#asked = asked;
    const own = (this.#form = responseForms[context.profile.name]);
    this.#isBody = form === "body";
    this.number = own.number[form];
    this.obfuscate = (asked.includeObfuscation ?? own.obfuscates) ? context.random : undefined;
    this.summarizes = asked.summarizes;
    this.showsLogprobs = asked.logprobs;
    this.keepAlive = own.keepAlive;
    this.endMark = own.endMark;
    this.opening = asked.echo.background ? ["created", "queued", "in_progress"] : ["created", "in_progress"];
    this.#ids = new ResponseIds(context.random);
    this.#now = context.now ?? (() => context.created);
    this.#created = context.created;
    this.#model = context.model;
  }

  /** Called before anything is written; the first call counts. */
  identify(source: SourceIdentity | undefined): void {
    if (this.#id !== undefined) return;
    const own = source?.id?.startsWith("resp_") === true ? source.id : undefined;
    if (own !== undefined) this.#created = source?.created ?? this.#created;
    const { model, profile } = this.#context;
    if (profile.resolvesModels && source?.model?.startsWith(`${model}-`) === true) this.#model = source.model;
    this.#tier = source?.serviceTier;
    this.#id = own ?? this.#ids.response(this.#created);
  }

  /** It goes on whether its client is there or not. */
  get isDetached(): boolean {
    return this.#asked.echo.background;
  }

  /** "" before it is identified. */
  get id(): string {
    return this.#id ?? "";
  }

  get created(): number {
    return this.#created;
  }

  /** The same response as a whole body; in the state in which it ended, unless another is given. null: it has not ended. */
  body(state: ResponseState | undefined = this.#last): string | null {
    if (state === undefined) return null;
    const body = new ResponseFrame(this.#context, this.#asked, "body");
    body.#id = this.#id;
    body.#created = this.#created;
    body.#model = this.#model;
    body.#tier = this.#tier;
    return bodyText(body.response(state), this.#context.profile);
  }

  /** `own`: the id that the source gave. */
  itemId(prefix: "msg_" | "rs_" | "fc_" | "ctc_" | "tsc_", own: string | undefined): string {
    return own?.startsWith(prefix) === true ? own : this.#ids.item(prefix, this.#now());
  }

  /** What kind of item a call is. */
  callKind(kind: "function" | "custom", name: string): CallKind {
    return kind === "function" && name === toolSearch && this.#asked.searches ? "search" : kind;
  }

  /** The name of a call, and its group's apart. `name` begins with the group's. */
  callName(name: string, namespace: string | undefined): { readonly name: string; readonly namespace?: string } {
    if (namespace !== undefined) return { name: nameWithin(namespace, name), namespace };
    return this.#asked.grouped.get(name) ?? { name };
  }

  /** `encrypted_content` of a thought, by the id of its item; undefined: no such member. */
  encryptedContent(id: string, thought: SealedThought): string | undefined {
    if ((thought.encrypted ?? thought.signature) !== undefined) this.seals[id] = sealThought(thought);
    // A source's own seal goes on as it is: only its maker can open it. A signature belongs to the text that it stands under.
    if (thought.encrypted !== undefined && thought.signature === undefined) return thought.encrypted;
    return this.#asked.sealsThoughts ? sealThought(thought) : undefined;
  }

  response(state: ResponseState): JsonValue {
    const { echo } = this.#asked;
    const form = this.#form;
    const isOver = !isRunning.has(state.event);
    if (isOver) this.#last = state;
    const float = (value: number): JsonValue => new JsonText(this.number(value));
    return {
      id: this.#id ?? "",
      object: "response",
      created_at: this.#created,
      status: state.event === "created" ? (echo.background ? "queued" : "in_progress") : state.event,
      background: echo.background,
      billing: this.#isBody ? form.billing : undefined,
      completed_at: state.event === "completed" ? Math.floor(this.#now()) : null,
      error: state.failure ? { code: state.failure.code, message: state.failure.message } : null,
      frequency_penalty: float(echo.frequencyPenalty),
      incomplete_details: state.incompleteReason === undefined ? null : { reason: state.incompleteReason },
      instructions: echo.instructions,
      max_output_tokens: echo.maxOutputTokens,
      max_tool_calls: echo.maxToolCalls,
      model: this.#model,
      moderation: form.moderation,
      output: state.output,
      parallel_tool_calls: echo.parallelToolCalls,
      presence_penalty: float(echo.presencePenalty),
      previous_response_id: echo.previousResponseId,
      prompt_cache_key: echo.promptCacheKey,
      prompt_cache_retention: echo.promptCacheRetention ?? form.promptCacheRetention,
      reasoning: form.reasoning(echo.reasoning.effort, echo.reasoning.summary),
      safety_identifier: echo.safetyIdentifier,
      service_tier: this.#serviceTier(isOver),
      store: echo.store,
      temperature: float(echo.temperature),
      text: { format: echo.textFormat, verbosity: echo.verbosity },
      tool_choice: echo.toolChoice,
      tool_usage: form.toolUsage,
      tools: echo.tools,
      top_logprobs: echo.topLogprobs,
      top_p: float(echo.topP),
      truncation: echo.truncation,
      usage: state.event === "completed" || state.event === "incomplete" ? responseUsage(state.usage) : null,
      user: echo.user,
      metadata: echo.metadata,
    };
  }

  #serviceTier(isOver: boolean): string | null {
    const asked = this.#asked.echo.serviceTier ?? "auto";
    if (!isOver || asked === "flex" || asked === "priority") return asked;
    return this.#tier ?? this.#context.settings.serviceTier ?? "default";
  }
}

const isRunning: ReadonlySet<ResponseState["event"]> = new Set(["created", "queued", "in_progress"]);
