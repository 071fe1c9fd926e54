import type { ExtraEvent, SourceIdentity, Usage } from "../../core/events.ts";
import { tokensInCharacters } from "../../core/estimate-tokens.ts";
import { isObject } from "../../core/json.ts";
import { nameWithin } from "../../core/custom-tool.ts";
import { JsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { inWireOrder, orderedMembers } from "../members.ts";
import type { AnswerContext } from "../port.ts";
import type { CallState } from "../../core/turn-state.ts";
import { openSeal } from "../turn-seal.ts";
import type { SealedReasoning } from "../turn-seal.ts";
import { responseBodyText, responseForms } from "./form.ts";
import type { NumberForm, ResponseForm } from "./form.ts";
import { grantedTier } from "../openai-models.ts";
import { ownId } from "../ids.ts";
import { idPrefixes, ResponseIds } from "./ids.ts";
import { isClientTool } from "./client-tools.ts";
import { outputCharacters, toolSearch, usageObject } from "./items.ts";
import type { CallItem, CallKind, ItemPrefix } from "./items.ts";
import type { ResponseOptions } from "./request-schema.ts";
import { cacheDiagnostics, floatMembers, response } from "./schema.ts";
import type { CacheDiagnostics } from "./schema.ts";

/** The state of a response at one of its events. */
export interface ResponseState {
  readonly event: "created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  readonly output: readonly JsonValue[];
  readonly incompleteReason?: "max_output_tokens" | "content_filter" | "steered";
  readonly failure?: { readonly code: string; readonly message: string };
  readonly usage?: Usage | undefined;
}

const running: ReadonlySet<ResponseState["event"]> = new Set(["created", "queued", "in_progress"]);

/** `id`: the response's id, unless the source has sent one in OpenAI's form; default: a new one. */
type ResponseContext = AnswerContext & { readonly id?: string };

/**
 * Makes the response object: its identity, the members that repeat the request, and the form of its profile. Also makes the ids of its
 * items. `form`: whether the response is streamed or is one body.
 */
export class ResponseObject {
  readonly number: NumberForm;
  /** Makes the characters that hide the length of a delta, uniform in [0, 1); undefined: deltas have none. */
  readonly obfuscate: (() => number) | undefined;
  /** Reasoning is shown as its summary. */
  readonly summarizes: boolean;
  readonly showsLogprobs: boolean;
  readonly keepAlive: ResponseForm["keepAlive"];
  readonly endMark: string;
  /** The events that a stream opens with. */
  readonly opening: readonly ("created" | "queued" | "in_progress")[];
  /** Compares the request with that of the response that it names, if it names one. `promptTokens`: if they are counted. */
  cacheDiagnostics: ((promptTokens: number | undefined) => CacheDiagnostics) | undefined;
  /** Returns the conversation as the `encrypted_content` of a compaction, if the response is one; called once it has its id. */
  compaction: (() => string) | undefined;
  /** The searches of the web that have run here. */
  searches = 0;
  /** The source has made the id. */
  isOfSource = false;
  /** What the sources of reasoning and calls demand back, and results of hosted tools, sealed, by the ids of the items. */
  readonly encrypted: Record<string, string> = {};
  readonly #context: ResponseContext;
  readonly #options: ResponseOptions;
  readonly #form: ResponseForm;
  readonly #isBody: boolean;
  readonly #ids: ResponseIds;
  readonly #now: () => number;
  #id: string | undefined;
  #created: number;
  #model: string;
  #tier: string | null | undefined;
  /** The members of an upstream's response that take the place of ours. */
  #passed: { [name: string]: JsonValue } = {};
  /** The state in which the response ended. */
  #last: ResponseState | undefined;

  constructor(context: ResponseContext, options: ResponseOptions, form: "stream" | "body") {
    this.#context = context;
    this.#options = options;
    const own = (this.#form = responseForms[context.profile.name]);
    this.#isBody = form === "body";
    this.number = own.number[form];
    this.obfuscate = (options.includeObfuscation ?? own.obfuscates) ? context.random : undefined;
    this.summarizes = options.summarizes;
    this.showsLogprobs = options.logprobs;
    this.keepAlive = own.keepAlive;
    this.endMark = own.endMark;
    this.opening = options.echo.background ? ["created", "queued", "in_progress"] : ["created", "in_progress"];
    this.#ids = new ResponseIds(context.random);
    this.#now = context.now ?? (() => context.created);
    this.#created = context.created;
    this.#model = context.model;
  }

  /** Sets the identity of the response. Called before anything is written; only the first call has an effect. */
  identify(source: SourceIdentity | undefined): void {
    if (this.#id !== undefined) return;
    const own = ownId("resp_", source?.id);
    this.isOfSource = own !== undefined;
    if (own !== undefined) this.#created = source?.created ?? this.#created;
    const { model, profile } = this.#context;
    if (profile.resolvesModels && source?.model?.startsWith(`${model}-`) === true) this.#model = source.model;
    this.#tier = source?.serviceTier;
    this.#id = own ?? this.#context.id ?? this.#ids.response(this.#created);
    this.#context.onId?.(this.#id);
  }

  /** Takes over the members of an upstream's response that no other event has. */
  passOn({ place, dialect, value }: ExtraEvent): void {
    if (place !== "chunk" || dialect !== "responses") return;
    const { prompt_cache_diagnostics: found, ...others } = value;
    if (isObject(found)) this.cacheDiagnostics = () => found as CacheDiagnostics;
    for (const [name, member] of Object.entries(inWireOrder(response, others) as object))
      if (this.#form.passes.has(name)) this.#passed[name] = member as JsonValue;
  }

  /** True for a background response, which is generated even if its client has disconnected. */
  get isBackground(): boolean {
    return this.#options.echo.background;
  }

  /** "" before `identify`. */
  get id(): string {
    return this.#id ?? "";
  }

  get created(): number {
    return this.#created;
  }

  /** Returns the item of a response that compacts its conversation; undefined: the response is a message of the model. */
  compactionItem(): JsonValue | undefined {
    const encrypted = this.compaction?.();
    if (encrypted === undefined) return undefined;
    return { id: this.#ids.item(idPrefixes.compaction, this.#now()), type: "compaction", encrypted_content: encrypted };
  }

  /** Returns the response as a whole body, in `state` or in the state in which it ended; null if it has not ended. */
  body(state: ResponseState | undefined = this.#last): string | null {
    if (state === undefined) return null;
    const body = new ResponseObject(this.#context, this.#options, "body");
    body.#id = this.#id;
    body.#created = this.#created;
    body.#model = this.#model;
    body.#tier = this.#tier;
    body.cacheDiagnostics = this.cacheDiagnostics;
    body.compaction = this.compaction;
    body.#passed = this.#passed;
    body.searches = this.searches;
    return responseBodyText(body.at(state), this.#context.profile);
  }

  /** Returns the id that the source gave to an item (`ownId`), else a new one. */
  itemId(prefix: ItemPrefix, own: string | undefined): string {
    return ownId(prefix, own) ?? this.#ids.item(prefix, this.#now());
  }

  callKind(kind: "function" | "custom", name: string): CallKind {
    if (kind === "custom") return kind;
    if (name === toolSearch && this.#options.searches) return "search";
    return this.#options.clientTools.has(name) && isClientTool(name) ? name : kind;
  }

  /** Separates the name of a call from its namespace. `name` begins with the namespace. */
  callName(name: string, namespace: string | undefined): Pick<CallItem, "name" | "namespace" | "isAsync"> {
    const isAsync = this.#options.asyncTools.has(name);
    if (namespace !== undefined) return { name: nameWithin(namespace, name), namespace, isAsync };
    return { ...(this.#options.grouped.get(name) ?? { name }), isAsync };
  }

  /** Returns the `encrypted_content` of a reasoning item, or `undefined` if it has no such member. */
  encryptedContent(id: string, reasoning: SealedReasoning): string | undefined {
    const { state } = reasoning;
    const { encryptsReasoning: isIncluded } = this.#options;
    if (!state && !isIncluded) return undefined;
    const sealed = (this.#context.turnSeal ?? openSeal).seal(reasoning);
    if (state) this.encrypted[id] = sealed;
    if (!isIncluded) return undefined;
    // Only its maker can decrypt a source's own content, so it is passed on unchanged.
    return state?.kind === "encrypted" ? state.value : sealed;
  }

  /**
   * Returns the state of a call if it has an item of its own, before the call: clients that include encrypted content send it back. For others,
   * the stored response keeps it. `id`: of the call's item.
   */
  callState(id: string, state: CallState): CallState | undefined {
    if (this.#options.encryptsReasoning) return state;
    this.encrypted[id] = (this.#context.turnSeal ?? openSeal).seal({ state });
    return undefined;
  }

  /** Whether the request asks for a member that is not shown by default (`include`). */
  includes(name: string): boolean {
    return this.#options.include?.includes(name) === true;
  }

  /**
   * Keeps what the item `id` of a hosted call does not show, for the next turn: the call's own id, which the reasoning before it may be bound
   * to, and the text that the model has read of the result. Returns it if it has an item of its own, after the call: clients that include
   * encrypted content send it back. For others, the stored response keeps it.
   */
  keepCall(
    id: string,
    { callId, text }: { readonly callId: string; readonly text?: string },
  ): SealedReasoning["result"] {
    if (this.#options.encryptsReasoning && text !== undefined) return { id, callId, text };
    this.encrypted[id] = (this.#context.turnSeal ?? openSeal).seal({ callId, ...(text !== undefined && { text }) });
    return undefined;
  }

  /** Returns the response object in a state. */
  at(state: ResponseState): JsonValue {
    const { echo } = this.#options;
    const form = this.#form;
    const isOver = !running.has(state.event);
    // No model counts the tokens of a compaction.
    const counted = this.compaction === undefined ? state.usage : undefined;
    const usage = this.#options.countsTokens ? (counted ?? this.#estimatedUsage(state)) : undefined;
    if (isOver) this.#last = state;
    const members: { [name: string]: JsonValue | undefined } = {
      ...echo,
      id: this.id,
      object: "response",
      created_at: this.#created,
      status: state.event === "created" ? (echo.background ? "queued" : "in_progress") : state.event,
      access_programs: form.accessPrograms === undefined ? undefined : (echo["access_programs"] ?? form.accessPrograms),
      billing: this.#isBody ? form.billing : undefined,
      completed_at: state.event === "completed" ? Math.floor(this.#now()) : null,
      error: state.failure ?? null,
      image: echo["image"] === undefined ? undefined : form.image,
      incomplete_details: state.incompleteReason === undefined ? null : { reason: state.incompleteReason },
      model: this.#model,
      moderation: form.moderation,
      output: state.output,
      prompt_cache_diagnostics: this.#diagnostics(state, isOver),
      prompt_cache_retention: echo["prompt_cache_retention"] ?? form.promptCacheRetention,
      reasoning: form.reasoning(echo.reasoning),
      service_tier: this.#serviceTier(isOver),
      tool_usage: this.#toolUsage(),
      usage: state.event === "completed" || state.event === "incomplete" ? usageObject(usage) : null,
      ...this.#passed,
    };
    if (state.event !== "incomplete") members["incomplete_details"] = null;
    for (const name of floatMembers) {
      const value = members[name];
      if (typeof value === "number") members[name] = new JsonText(this.number(value));
    }
    return orderedMembers(response, members);
  }

  #toolUsage(): JsonValue | undefined {
    const { toolUsage } = this.#form;
    if (toolUsage === undefined || this.searches === 0) return toolUsage;
    return { ...(toolUsage as { readonly [name: string]: JsonValue }), web_search: { num_requests: this.searches } };
  }

  /** Codex compacts a conversation by its usage, so 0 would mislead it. */
  #estimatedUsage({ event, output }: ResponseState): Usage | undefined {
    const { estimatePrompt } = this.#options;
    if (!estimatePrompt || (event !== "completed" && event !== "incomplete")) return undefined;
    return { promptTokens: estimatePrompt(), completionTokens: tokensInCharacters(outputCharacters(output)) };
  }

  /** `created` has no diagnostics, and the result is in the last event only (recordings of 2026-09-29). */
  #diagnostics({ event, usage }: ResponseState, isOver: boolean): JsonValue | undefined {
    if (this.cacheDiagnostics === undefined || event === "created") return undefined;
    const shown = isOver ? this.cacheDiagnostics(usage?.promptTokens) : ({ type: "unavailable" } as const);
    return inWireOrder(cacheDiagnostics, shown) as JsonValue;
  }

  #serviceTier(isOver: boolean): string | null {
    const requested = this.#options.echo.service_tier ?? "auto";
    const { settings } = this.#context;
    const granted = grantedTier(requested, settings.standsFor);
    return isOver ? (this.#tier ?? granted ?? settings.serviceTier ?? "default") : (granted ?? requested);
  }
}
