import { findFormat } from "../../../formats/find-format.ts";
import type { Format } from "../../../formats/format.ts";
import { plainText } from "../../../formats/plain-text.ts";
import { ChatTemplate } from "../../../templates/chat-template.ts";
import { templateMetadata } from "../../../templates/template-metadata.ts";
import type { AskedOfModel } from "../protocol.ts";
import { type Constraint, constraintOf } from "./constraint-request.ts";
import type { AnswerReading } from "./prepared-request.ts";
import { genericCalls, type PreparingSurroundings, renderRequest } from "./render-request.ts";
import type { Preparation, ThreadNews, ThreadSetup } from "./thread-messages.ts";
import { createHash } from "node:crypto";

/** Constraints that are kept, and how long their grammars may be together, in characters. */
const constraintLimits = { values: 128, weight: 16 * 2 ** 20 };

type KnownConstraint = Omit<Constraint, "plan"> & { readonly number: number };

/**
 * Prepares the requests to one model. The template is parsed and probed once. A grammar is made once for equal tools, output and format,
 * and kept in a bounded cache. `tell` is called with each format and constraint before the first request that refers to it.
 */
export class Preparer {
  readonly #around: PreparingSurroundings;
  readonly #tell: (news: ThreadNews) => void;
  readonly #formats = new Map<Format, number>();
  readonly #constraints: BoundedCache<KnownConstraint>;
  readonly #holdsCalls: boolean;
  #constraintsMade = 0;

  constructor(
    { facts, chatTemplate, toolFormat, defaults, constrainCalls = true }: ThreadSetup,
    tell: (news: ThreadNews) => void,
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
    this.#around = { facts, template, format, genericFormat: genericCalls(format), stopStrings, defaults };
    this.#tell = tell;
    this.#holdsCalls = constrainCalls;
    this.#constraints = new BoundedCache(constraintLimits, ({ number }) => tell({ type: "forget", number }));
  }

  /** `now` is for templates that print a date. Throws FailureError for what cannot be served. */
  prepare(asked: AskedOfModel, now: Date): Preparation {
    const { request, warnings } = renderRequest(asked, this.#around, now);
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

  #constraint(asked: AskedOfModel, reading: AnswerReading): KnownConstraint | undefined {
    if (asked.output === undefined && (asked.tools ?? []).length === 0) return undefined;
    const key = this.#keyOf(asked, reading);
    const known = this.#constraints.get(key);
    if (known) return known;
    const made = constraintOf(asked, reading, {
      knowsThoughts: knowsThoughts(this.#around.template, reading.format),
      holdsCalls: this.#holdsCalls,
    });
    if (made === undefined) return undefined;
    const { plan, ...rest } = made;
    const constraint = { ...rest, number: ++this.#constraintsMade };
    const format = this.#formatNumber(plan.format);
    this.#tell({ type: "constraint", number: constraint.number, plan: { ...plan, format } });
    this.#constraints.add(key, constraint, plan.grammar.gbnf.length);
    return constraint;
  }

  /** All that a constraint depends on, as a hash: schemas may be long. */
  #keyOf({ prompt, tools, toolChoice, parallelToolCalls, output }: AskedOfModel, reading: AnswerReading): string {
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
      this.#tell({ type: "format", number, format });
    }
    return number;
  }
}

/** The model may open a thought by itself: its template writes thoughts. */
function knowsThoughts(template: ChatTemplate | null, { reasoning }: Format): boolean {
  if (template === null || reasoning === undefined) return false;
  return template.capabilities.reasoningTags !== null || reasoning.open.some((open) => template.source.includes(open));
}

/** Keeps what was used last: at most so many values, whose weights sum up to at most so much. */
export class BoundedCache<Value> {
  readonly #mostValues: number;
  readonly #mostWeight: number;
  readonly #onDropped: (value: Value) => void;
  /** From the one that was used longest ago to the one that was used last. */
  readonly #entries = new Map<string, { readonly value: Value; readonly weight: number }>();
  #weight = 0;

  constructor(limits: { readonly values: number; readonly weight: number }, onDropped: (value: Value) => void) {
    this.#mostValues = limits.values;
    this.#mostWeight = limits.weight;
    this.#onDropped = onDropped;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Adds a value under a key that has none. It stays until others need the room, however heavy it is. */
  add(key: string, value: Value, weight: number): void {
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const [oldest, entry] of this.#entries) {
      if (oldest === key || (this.#entries.size <= this.#mostValues && this.#weight <= this.#mostWeight)) return;
      this.#entries.delete(oldest);
      this.#weight -= entry.weight;
      this.#onDropped(entry.value);
    }
  }
}
