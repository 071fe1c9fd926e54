import type { LooseSchemas } from "../../wire/apis/adapt/simplify-schema.ts";
import type { RepairId } from "../../wire/apis/tolerant/repairs.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { isJsonText } from "../../wire/core/json.ts";
import { Relay } from "../../wire/core/relay.ts";
import type { JsonSchema } from "../../wire/core/message.ts";
import type { Background } from "./background/background.ts";
import { warningHeaders } from "./attempt.ts";

type Batch = readonly GenerationEvent[];

export interface JudgeOptions {
  readonly schemas: LooseSchemas;
  readonly background: Background;
  /** Of the request. */
  readonly owner?: string | undefined;
  /** Starts a generation of the request. Called a second time if the first answer does not fit, and nothing was shown of it. */
  start(): AsyncIterable<readonly GenerationEvent[]>;
  /** A JSON text was repaired, did not fit, or was requested again. `errors`: without texts of the answer. */
  report(id: RepairId, subject: string, errors: string): void;
  /** The answer is written whole, so that its JSON text can be repaired, too. */
  readonly isWhole: boolean;
}

/**
 * Judges the calls and the JSON text of an answer by the client's schemas, for a server that got looser ones. The arguments of such calls are
 * held back until they are complete; the text of a stream is not. What does not fit is repaired, or requested once again if nothing was
 * shown, or sent as it is and reported, with a warning header where the headers are not sent yet.
 */
export function judgedAnswer(options: JudgeOptions): AsyncIterable<Batch> {
  let judge = new AnswerJudge(options, true);
  const read = (batch: Batch, relay: Relay): Batch | Promise<Batch> => {
    const judged = judge.take(batch, relay);
    return judged instanceof Promise ? judged.then((events) => given(events, relay)) : given(judged, relay);
  };
  let isRepeated = false;
  const given = (events: Batch | null, relay: Relay): Batch | Promise<Batch> => {
    if (events !== null)
      return relay.isUnsent ? withWarnings(events, judge.warnings) : isRepeated ? withoutStart(events) : events;
    judge = new AnswerJudge(options, false);
    isRepeated = true;
    return relay.ask(options.start).then((first) => read(first, relay));
  };
  return new Relay(async (relay) => read(await relay.ask(options.start), relay), { read });
}

/** The longest JSON text that is judged, and the most that is held back while calls are open, in characters. */
const maxJudged = 8 * 1024 * 1024;

interface OpenCall {
  /** null: the text is too long to be judged. */
  schema: JsonSchema | null;
  readonly name: string;
  text: string;
}

class AnswerJudge {
  readonly #options: JudgeOptions;
  readonly #mayRepeat: boolean;
  readonly warnings: string[] = [];
  /** Calls that are held back, by their start event. */
  readonly #calls = new Map<GenerationEvent, OpenCall>();
  /** Calls whose arguments are arriving, by choice and index. */
  readonly #open = new Map<string, OpenCall>();
  /** Events since the first call that is open. */
  #held: GenerationEvent[] = [];
  #heldCharacters = 0;
  /** The text of each choice. */
  readonly #texts = new Map<number, string>();

  constructor(options: JudgeOptions, mayRepeat: boolean) {
    this.#options = options;
    this.#mayRepeat = mayRepeat;
  }

  /** Returns the events for the client; null: the answer is to be requested again. */
  take(batch: Batch, relay: Relay): Batch | null | Promise<Batch | null> {
    const { schemas, isWhole } = this.#options;
    let hasText = false;
    for (const event of batch) {
      if (event.type === "tool-call-start") {
        const schema = event.kind === "custom" ? undefined : schemas.tools.get(event.name);
        if (schema !== undefined) {
          const call = { schema, name: event.name, text: "" };
          this.#calls.set(event, call);
          this.#open.set(keyOf(event), call);
        }
      } else if (event.type === "tool-call-delta") {
        const call = this.#open.get(keyOf(event));
        if (call) {
          call.text += event.arguments;
          this.#hold(event.arguments.length);
          continue;
        }
      } else if (event.type === "tool-call-end") this.#open.delete(keyOf(event));
      else if (event.type === "text-delta" && schemas.output !== undefined) {
        const text = this.#texts.get(event.choice) ?? "";
        if (text.length <= maxJudged) this.#texts.set(event.choice, text + event.text);
        hasText = true;
      } else if (event.type === "end") this.#open.clear();
      this.#held.push(event);
      if (event.type === "tool-call-delta") this.#hold(event.arguments.length);
      else if ("text" in event && typeof event.text === "string") this.#hold(event.text.length);
    }
    // The texts of a whole answer arrive with its end, or are held back until then.
    const waits = isWhole && schemas.output !== undefined && batch.at(-1)?.type !== "end";
    if (this.#open.size > 0 || waits || (this.#held.length === 0 && !hasText)) return [];
    const held = this.#held;
    this.#held = [];
    this.#heldCharacters = 0;
    // Most batches of a stream are its text.
    const isJudged = this.#calls.size > 0 || held.some(({ type }) => type === "finish");
    return isJudged ? this.#judged(held, relay) : held;
  }

  /** Above the limit, the calls that are open are not judged, so that nothing is held back any longer. */
  #hold(characters: number): void {
    this.#heldCharacters += characters;
    if (this.#heldCharacters <= maxJudged) return;
    for (const call of this.#open.values()) call.schema = null;
    this.#open.clear();
  }

  async #judged(events: Batch, relay: Relay): Promise<Batch | null> {
    const judged: GenerationEvent[] = [];
    const isFailed = events.some((event) => event.type === "end" && event.end.kind !== "done");
    for (const event of events) {
      const call = this.#calls.get(event);
      if (call && event.type === "tool-call-start") {
        this.#calls.delete(event);
        const { schema, name } = call;
        const isJudged = !isFailed && schema !== null;
        const text = isJudged ? await this.#judge(call.text, schema, `tool ${name}`, relay) : call.text;
        if (text === null) return null;
        judged.push(event);
        if (text !== "") judged.push(deltaOf(event, text));
      } else if (event.type === "finish") {
        const text = await this.#judgedText(event.choice, event.reason === "stop" && !isFailed, relay);
        if (text === null) return null;
        if (text !== undefined) replaceText(judged, event.choice, text);
        judged.push(event);
      } else judged.push(event);
    }
    return judged;
  }

  /** The repaired text of a choice; undefined: it stays as it is; null: request the answer again. */
  async #judgedText(choice: number, isComplete: boolean, relay: Relay): Promise<string | null | undefined> {
    const { schemas, isWhole } = this.#options;
    const text = this.#texts.get(choice);
    this.#texts.delete(choice);
    if (text === undefined || schemas.output === undefined || !isComplete) return undefined;
    const other = await this.#judge(text, schemas.output, "answer", relay, isWhole, isWhole);
    return other === text ? undefined : other;
  }

  /** Returns the text to send; null: request the answer again. */
  async #judge(
    text: string,
    schema: JsonSchema,
    subject: string,
    relay: Relay,
    mayRepair = true,
    mayRepeat = true,
  ): Promise<string | null> {
    const { background, owner, report } = this.#options;
    // Such a text was cut, or is for other repairs.
    if (text.length > maxJudged || !isJsonText(text)) return text;
    let judgment;
    try {
      judgment = await background.judge(text, schema, { owner, signal: relay.signal });
    } catch (error) {
      if (relay.signal.aborted) return text;
      report("schema-unchecked", subject, error instanceof Error ? error.message : String(error));
      return text;
    }
    if (judgment === null) return text;
    const { errors, repaired } = judgment;
    if (repaired !== undefined && mayRepair) {
      report("schema-repaired", subject, errors);
      return repaired;
    }
    if (this.#mayRepeat && mayRepeat && relay.isUnseen) {
      report("schema-repeated", subject, errors);
      return null;
    }
    report("schema-violation", subject, errors);
    this.warnings.push(`the ${subject} does not fit the client's JSON Schema: ${errors}`);
    return text;
  }
}

function keyOf({ choice, index }: { readonly choice: number; readonly index: number }): string {
  return `${choice}:${index}`;
}

function deltaOf(
  { choice, index }: { readonly choice: number; readonly index: number },
  text: string,
): GenerationEvent {
  return { type: "tool-call-delta", choice, index, arguments: text };
}

/** Writes the text of a choice into its first delta, without logprobs, which belong to the other text. */
function replaceText(events: GenerationEvent[], choice: number, text: string): void {
  let isFirst = true;
  for (const [at, event] of [...events.entries()].reverse()) {
    if (event.type !== "text-delta" || event.choice !== choice) continue;
    if (isFirst) events[at] = { type: "text-delta", choice, text };
    else events.splice(at, 1);
    isFirst = false;
  }
}

function withoutStart(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
  return events.filter(({ type }) => type !== "start");
}

/** Adds a warning header for the client to the start of an answer. */
export function withWarnings(
  events: readonly GenerationEvent[],
  warnings: readonly string[],
): readonly GenerationEvent[] {
  if (warnings.length === 0) return events;
  let isFirst = true;
  return events.map((event) => {
    if (event.type !== "start" || !isFirst) return event;
    isFirst = false;
    const { headers: own = {} } = event.source ?? {};
    const { "x-truewire-warning": earlier } = own;
    const headers = { ...own, ...warningHeaders(earlier === undefined ? warnings : [earlier, ...warnings]) };
    return { ...event, source: { ...event.source, headers } };
  });
}
