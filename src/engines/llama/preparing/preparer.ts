import { findFormat } from "../../../text/formats/find-format.ts";
import { type Format, plainText } from "../../../text/formats/format.ts";
import { ChatTemplate } from "../../../text/templates/chat-template.ts";
import { templateMetadata } from "../../../text/templates/template-metadata.ts";
import type { ModelRequest } from "../protocol.ts";
import { type Constraint, constraintOf } from "./constraint-request.ts";
import type { AnswerParsing } from "./prepared-request.ts";
import { genericCalls, type PreparingContext, renderRequest } from "./render-request.ts";
import type { Preparation, ThreadRegistration, ThreadSetup } from "./thread-messages.ts";
import { createHash } from "node:crypto";

/** Maximum number of cached constraints, and of characters in their grammars. */
const constraintLimits = { values: 128, weight: 16 * 2 ** 20 };

type KnownConstraint = Omit<Constraint, "plan"> & { readonly number: number };

/**
 * Prepares the requests to a model. The template is parsed and probed once. A grammar is made once for equal tools, output and format, and
 * cached. `register` is called with each format and constraint before the first request that refers to it.
 */
export class Preparer {
  readonly #context: PreparingContext;
  readonly #register: (registration: ThreadRegistration) => void;
  readonly #formats = new Map<Format, number>();
  readonly #constraints: BoundedCache<KnownConstraint>;
  readonly #holdsCalls: boolean;
  #constraintsMade = 0;

  constructor(
    { facts, chatTemplate, toolFormat, defaults, constrainCalls = true }: ThreadSetup,
    register: (registration: ThreadRegistration) => void,
  ) {
    const source = chatTemplate ?? facts.chatTemplate;
    const template =
      source === null
        ? null
        : new ChatTemplate({
            source,
            specialTokens: facts.specialTokens,
            markupTokens: facts.markupTokens,
            ...(facts.bosToken !== null && { bosToken: facts.bosToken }),
            ...(facts.eosToken !== null && { eosToken: facts.eosToken }),
          });
    const metadata = templateMetadata(source ?? "");
    const format = toolFormat ?? (template === null ? plainText : findFormat(template, metadata));
    const { stopStrings = [] } = metadata;
    this.#context = { facts, template, format, genericFormat: genericCalls(format), stopStrings, defaults };
    this.#register = register;
    this.#holdsCalls = constrainCalls;
    this.#constraints = new BoundedCache(constraintLimits, ({ number }) => register({ type: "forget", number }));
  }

  /** `now` is for templates that print a date. Throws `FailureError` for requests that cannot be served. */
  prepare(asked: ModelRequest, now: Date): Preparation {
    const { request, warnings } = renderRequest(asked, this.#context, now);
    const { reading, ...rest } = request;
    const constraint = this.#constraint(asked, reading);
    return {
      request: {
        ...rest,
        reading: { ...reading, format: this.#formatNumber(reading.format) },
        ...(constraint && { constraint: constraint.number }),
      },
      warnings: [...warnings, ...(constraint?.warnings ?? [])],
      ...(constraint?.check && { check: constraint.check }),
    };
  }

  #constraint(asked: ModelRequest, reading: AnswerParsing): KnownConstraint | undefined {
    if (asked.output === undefined && (asked.tools ?? []).length === 0) return undefined;
    const key = this.#keyOf(asked, reading);
    const known = this.#constraints.get(key);
    if (known) return known;
    const made = constraintOf(asked, reading, {
      writesReasoning: writesReasoning(this.#context.template, reading.format),
      constrainsCalls: this.#holdsCalls,
    });
    if (made === undefined) return undefined;
    const { plan, ...rest } = made;
    const constraint = { ...rest, number: ++this.#constraintsMade };
    const format = this.#formatNumber(plan.format);
    this.#register({ type: "constraint", number: constraint.number, plan: { ...plan, format } });
    this.#constraints.add(key, constraint, plan.grammar.gbnf.length);
    return constraint;
  }

  /** A hash of everything that a constraint depends on. */
  #keyOf({ prompt, tools, toolChoice, parallelToolCalls, output }: ModelRequest, reading: AnswerParsing): string {
    const { format, prefix, callsAllowed, thinking } = reading;
    const legacy = prompt.kind === "chat" && prompt.legacyFunctions === true;
    const parts = [
      this.#formatNumber(format),
      prefix,
      callsAllowed,
      thinking,
      legacy,
      tools,
      toolChoice,
      parallelToolCalls,
      output,
    ];
    return createHash("sha256").update(JSON.stringify(parts)).digest("base64");
  }

  #formatNumber(format: Format): number {
    let number = this.#formats.get(format);
    if (number === undefined) {
      this.#formats.set(format, (number = this.#formats.size));
      this.#register({ type: "format", number, format });
    }
    return number;
  }
}

/** The model may open reasoning by itself, because its template renders reasoning. */
function writesReasoning(template: ChatTemplate | null, { reasoning }: Format): boolean {
  if (template === null || reasoning === undefined) return false;
  return template.capabilities.reasoningTags !== null || reasoning.open.some((open) => template.source.includes(open));
}

/** A least-recently-used cache with a maximum number of values and a maximum of their total weight. */
export class BoundedCache<Value> {
  readonly #maxValues: number;
  readonly #maxWeight: number;
  readonly #onDropped: (value: Value) => void;
  /** In the order of their last use. */
  readonly #entries = new Map<string, { readonly value: Value; readonly weight: number }>();
  #weight = 0;

  constructor(limits: { readonly values: number; readonly weight: number }, onDropped: (value: Value) => void) {
    this.#maxValues = limits.values;
    this.#maxWeight = limits.weight;
    this.#onDropped = onDropped;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Adds a value with a new key. A value above the maximum weight stays until the next one is added. */
  add(key: string, value: Value, weight: number): void {
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const [oldest, entry] of this.#entries) {
      if (oldest === key || (this.#entries.size <= this.#maxValues && this.#weight <= this.#maxWeight)) return;
      this.#entries.delete(oldest);
      this.#weight -= entry.weight;
      this.#onDropped(entry.value);
    }
  }
}
