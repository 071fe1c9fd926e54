import type { GenerationEvent, TextDeltaEvent, TokenLogprob } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { type FencePart, JsonFence, jsonOf } from "./json-fence.ts";
import type { RepairId } from "./repairs.ts";

/** Whether the text of an answer must be JSON. Reasoning that the client wants in the text is no part of the JSON. */
export function demandsJson({ output, reasoning }: Pick<GenerationRequest, "output" | "reasoning">): boolean {
  return (output?.type === "json-object" || output?.type === "json-schema") && reasoning?.inText !== true;
}

/**
 * The same of the body of a request to any API. Sources: OpenAI's specification, `response_format` and `text.format`; Anthropic's
 * documentation, Structured outputs.
 */
export function bodyDemandsJson(body: unknown): boolean {
  if (!isObject(body)) return false;
  const { response_format: format, text, output_config: config, output_format: older } = body;
  const ownFormat = isObject(text)
    ? text["format"]
    : (format ?? (isObject(config) ? config["format"] : older) ?? older);
  return isObject(ownFormat) && (ownFormat["type"] === "json_object" || ownFormat["type"] === "json_schema");
}

interface JsonAnswerOptions {
  /** The answer is written whole: JSON between other text is found, too, and the events of a choice are held back until its end. */
  readonly isWhole: boolean;
  /** Called for each repair. */
  note(repair: RepairId): void;
}

interface Choice {
  fence: JsonFence;
  /** The logprobs of tokens whose text is held back. */
  logprobs: TokenLogprob[];
  hasText: boolean;
  hasCalls: boolean;
  hasRemoved: boolean;
  hasOtherText: boolean;
  /** Events of an answer that is written whole. */
  held: GenerationEvent[];
}

/**
 * Leaves only the JSON of an answer whose text must be JSON, and notes what else there was. See `JsonFence`. Each text part has its own
 * JSON.
 */
export class JsonAnswer {
  readonly #options: JsonAnswerOptions;
  readonly #choices = new Map<number, Choice>();

  constructor(options: JsonAnswerOptions) {
    this.#options = options;
  }

  /** Returns the events that replace these. */
  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const out: GenerationEvent[] = [];
    for (const event of events) {
      if (event.type === "end") for (const { held } of this.#choices.values()) out.push(...held.splice(0));
      const isApart = event.type === "start" || (event.type === "extra" && event.place !== "item");
      if (!("choice" in event) || event.choice === undefined || isApart) out.push(event);
      else if (this.#options.isWhole) this.#hold(event, event.choice, out);
      else this.#stream(event, event.choice, out);
    }
    return out;
  };

  #choice(number: number): Choice {
    let choice = this.#choices.get(number);
    if (!choice) {
      choice = {
        fence: new JsonFence(),
        logprobs: [],
        hasText: false,
        hasCalls: false,
        hasRemoved: false,
        hasOtherText: false,
        held: [],
      };
      this.#choices.set(number, choice);
    }
    return choice;
  }

  #stream(event: GenerationEvent, number: number, out: GenerationEvent[]): void {
    const choice = this.#choice(number);
    switch (event.type) {
      case "text-delta":
        choice.hasText ||= event.text !== "";
        return pushText(event, choice, out);
      case "tokens":
      case "markup":
      case "progress":
      case "annotation":
      case "extra":
      case "reasoning-delta":
        break;
      case "finish":
        endText(choice, number, out);
        this.#report(choice, event.reason === "stop");
        break;
      default:
        endText(choice, number, out);
        if (event.type === "tool-call-start") choice.hasCalls = true;
        if (event.type === "part-start" && event.kind === "text") choice.fence = new JsonFence();
    }
    out.push(event);
  }

  #hold(event: GenerationEvent, number: number, out: GenerationEvent[]): void {
    const choice = this.#choice(number);
    choice.held.push(event);
    if (event.type !== "finish") return;
    const held = choice.held.splice(0);
    choice.hasCalls = held.some(({ type }) => type === "tool-call-start");
    for (let from = 0; from < held.length;) {
      const next = held.findIndex(({ type }, at) => at > from && type === "part-start");
      const part = held.slice(from, next === -1 ? held.length : next);
      out.push(...withJson(part, number, choice));
      from += part.length;
    }
    this.#report(choice, event.reason === "stop");
  }

  #report({ hasText, hasCalls, hasRemoved, hasOtherText }: Choice, isComplete: boolean): void {
    if (hasRemoved) this.#options.note("json-fence");
    // Before a call any text is usual, and a text that was cut is not JSON.
    if (hasText && hasOtherText && isComplete && !hasCalls) this.#options.note("json-other-text");
  }
}

/** The events of one part of a whole answer, with only the JSON of their text. */
function withJson(events: readonly GenerationEvent[], number: number, choice: Choice): readonly GenerationEvent[] {
  const texts = events.filter((event) => event.type === "text-delta");
  const text = texts.map((event) => event.text).join("");
  if (text === "") return events;
  const found = jsonOf(text);
  choice.hasText = true;
  choice.hasRemoved ||= found.hasRemoved;
  choice.hasOtherText ||= found.hasOtherText || !found.isJson;
  if (found.text === text) return events;
  const parts: FencePart[] = [
    { type: "reasoning", text: found.reasoning },
    { type: "text", text: found.text },
  ];
  // The logprobs belong to the other text.
  return events.flatMap((event) =>
    event === texts[0] ? deltasOf(parts, number) : event.type === "text-delta" ? [] : [event],
  );
}

function deltasOf(parts: readonly FencePart[], choice: number): GenerationEvent[] {
  return parts.flatMap(({ type, text }): GenerationEvent[] => {
    if (text === "") return [];
    return [type === "text" ? { type: "text-delta", choice, text } : { type: "reasoning-delta", choice, text }];
  });
}

function pushText(event: TextDeltaEvent, choice: Choice, out: GenerationEvent[]): void {
  const { logprobs = [], text } = event;
  if (logprobs.length === 0) {
    addParts(choice.fence.push(text), event.choice, choice, out);
    return;
  }
  const areTheText = logprobs.map(({ token }) => token).join("") === text;
  for (const logprob of areTheText ? logprobs : logprobs.slice(-1)) {
    const token = areTheText ? logprob.token : text;
    choice.logprobs.push(logprob);
    addParts(choice.fence.push(token), event.choice, choice, out);
    // The token was a part of the fence.
    if (token !== "" && !choice.fence.isHolding) choice.logprobs = [];
  }
}

/** Adds what a fence has returned, with the logprobs of its tokens. */
function addParts(parts: readonly FencePart[], number: number, choice: Choice, out: GenerationEvent[]): void {
  for (const event of deltasOf(parts, number)) {
    const { logprobs } = choice;
    if (event.type !== "text-delta" || logprobs.length === 0) out.push(event);
    else {
      out.push({ ...event, logprobs });
      choice.logprobs = [];
    }
  }
}

function endText(choice: Choice, number: number, out: GenerationEvent[]): void {
  const { fence } = choice;
  addParts(fence.end(), number, choice, out);
  choice.hasRemoved ||= fence.hasRemoved;
  choice.hasOtherText ||= fence.hasOtherText;
}
