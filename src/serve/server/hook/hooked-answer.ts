import type { GenerationEvent } from "../../../wire/core/events.ts";
import { isVisible } from "../../../wire/core/events.ts";
import type { HookPart } from "../../../wire/core/hook.ts";
import { isObject } from "../../../wire/core/json.ts";

/** What a hook may hold back of a part, and add to an answer, in characters. */
const maxHeld = 256 * 1024;

type DeltaEvent = Extract<GenerationEvent, { readonly type: "text-delta" | "reasoning-delta" | "refusal-delta" }>;
type CallStart = Extract<GenerationEvent, { readonly type: "tool-call-start" }>;

/** Resolves with what the hook returns for a part; null: nothing. */
type AskHook = (part: HookPart) => Promise<unknown>;

/** A hook returned something else than it may. */
export class WrongHookResult extends Error {
  override readonly name = "WrongHookResult";
}

interface OpenChoice {
  /** The kind of the open text, and what the hook held back of it. */
  delta: DeltaEvent | undefined;
  rest: string;
  /** Not seen by the hook yet. */
  fresh: DeltaEvent[];
  /** Events that belong behind the text that is held back. */
  behind: GenerationEvent[];
  call: { readonly start: CallStart; arguments: string } | undefined;
  /** The hook has changed the open part. */
  isChanged: boolean;
}

/** The events of an answer as a hook lets them pass: text as it comes, tool calls whole. */
export class HookedAnswer {
  readonly #ask: AskHook;
  readonly #choices = new Map<number, OpenChoice>();
  /** Events before the first visible one: until it, a refusal has its own status. */
  #early: GenerationEvent[] | undefined = [];
  #received = 0;
  #sent = 0;

  constructor(ask: AskHook) {
    this.#ask = ask;
  }

  /** Rejects with what `ask` rejects with, and with `WrongHookResult`. */
  async read(events: readonly GenerationEvent[]): Promise<readonly GenerationEvent[]> {
    const out: GenerationEvent[] = [];
    for (const event of events) {
      if (event.type === "end") for (const choice of this.#choices.keys()) await this.#flush(choice, true, out);
      if (!("choice" in event) || event.type === "progress" || event.type === "extra") out.push(event);
      else await this.#take(event, out);
    }
    for (const [choice, { fresh }] of this.#choices) if (fresh.length > 0) await this.#flush(choice, false, out);
    if (!this.#early) return out;
    this.#early.push(...out);
    if (!out.some(isVisible) && events.at(-1)?.type !== "end") return [];
    const all = this.#early;
    this.#early = undefined;
    return all;
  }

  async #take(event: GenerationEvent & { readonly choice: number }, out: GenerationEvent[]): Promise<void> {
    const open = this.#of(event.choice);
    const { call } = open;
    switch (event.type) {
      case "text-delta":
      case "reasoning-delta":
      case "refusal-delta":
        if (open.delta && kindOf(open.delta) !== kindOf(event)) await this.#flush(event.choice, true, out);
        open.delta = event;
        open.fresh.push(event);
        return;
      case "annotation":
      case "markup":
      case "tokens":
        // A part that has changed has its citations at other places.
        open.behind.push(event);
        if (open.rest === "" && open.fresh.length === 0) out.push(...this.#behind(open));
        return;
      case "tool-call-start":
        await this.#flush(event.choice, true, out);
        open.call = { start: event, arguments: "" };
        return;
      case "tool-call-delta":
        if (call) call.arguments += event.arguments;
        return;
      case "tool-call-end": {
        open.call = undefined;
        if (!call) return;
        const { start } = call;
        const part = {
          type: "tool-call",
          text: call.arguments,
          name: start.name,
          choice: start.choice,
          isEnd: true,
        } as const;
        const { text } = await this.#changed(part);
        out.push(
          start,
          ...(text === ""
            ? []
            : [{ type: "tool-call-delta", choice: start.choice, index: start.index, arguments: text } as const]),
          event,
        );
        return;
      }
      case "part-end": {
        await this.#flush(event.choice, true, out);
        const { state: _, ...plain } = event;
        // A vendor's signature is one of the text that it has sent.
        out.push(open.isChanged ? plain : event);
        open.isChanged = false;
        return;
      }
      default:
        await this.#flush(event.choice, true, out);
        if (event.type === "part-start") open.isChanged = false;
        out.push(event);
    }
  }

  #of(choice: number): OpenChoice {
    let open = this.#choices.get(choice);
    if (!open) {
      open = { delta: undefined, rest: "", fresh: [], behind: [], call: undefined, isChanged: false };
      this.#choices.set(choice, open);
    }
    return open;
  }

  async #flush(choice: number, isEnd: boolean, out: GenerationEvent[]): Promise<void> {
    const open = this.#of(choice);
    const { delta, fresh, rest } = open;
    if (delta && (rest !== "" || fresh.length > 0)) {
      const given = rest + fresh.map(({ text }) => text).join("");
      const type = delta.type === "text-delta" ? "text" : delta.type === "reasoning-delta" ? "reasoning" : "refusal";
      const changed = await this.#changed({ type, text: given, choice, isEnd });
      open.fresh = [];
      open.rest = changed.rest;
      if (changed.text === given && rest === "") out.push(...fresh);
      else {
        open.isChanged ||= changed.text + changed.rest !== given;
        const { logprobs: _, ...plain } = delta;
        if (changed.text !== "") out.push({ ...plain, text: changed.text });
      }
    }
    if (open.rest === "") out.push(...this.#behind(open));
    if (isEnd) open.delta = undefined;
  }

  #behind(open: OpenChoice): readonly GenerationEvent[] {
    const { behind } = open;
    open.behind = [];
    if (!open.isChanged) return behind;
    return behind.map((event) => {
      if (event.type !== "annotation") return event;
      const { start: _, end: __, native: ___, ...annotation } = event.annotation;
      return { ...event, annotation };
    });
  }

  async #changed(part: HookPart): Promise<{ readonly text: string; readonly rest: string }> {
    const returned = (await this.#ask(part)) ?? part.text;
    const { text, rest = "" } = typeof returned === "string" ? { text: returned } : isObject(returned) ? returned : {};
    if (typeof text !== "string" || typeof rest !== "string")
      throw new WrongHookResult(`answer returned ${typeof returned}; expected a text, { text, rest } or nothing`);
    if (part.isEnd && rest !== "")
      throw new WrongHookResult("answer held back a rest at the end of a part (isEnd); expected all of it in text");
    this.#received += part.text.length - rest.length;
    this.#sent += text.length;
    if (rest.length > maxHeld || this.#sent - this.#received > maxHeld)
      throw new WrongHookResult(`answer held back or added more than ${maxHeld} characters`);
    return { text, rest };
  }
}

function kindOf(event: DeltaEvent): string {
  return event.type === "reasoning-delta" ? `${event.type} ${event.summary}` : event.type;
}
