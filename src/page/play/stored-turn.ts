import type { TokenAlternative, TokenLogprob, Usage } from "../../wire/core/events.ts";
import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import { Answer, Choice } from "./answer.ts";
import type { TextChunk, TextLog } from "./text-log.ts";
import type { AnswerTurn, AttachedFile, RequestOptions, QuestionTurn, Result, ResultsTurn, Turn } from "./turn.ts";

/*
 * Turns as JSON: the form in which IndexedDB keeps them and exported files have them (docs/page.md, "Files of conversations"). Files come from
 * anywhere, and what is kept may be of another version of the page, so both are validated.
 */

export type StoredTurn = QuestionTurn | ResultsTurn | StoredAnswerTurn;

interface StoredAnswerTurn extends Omit<AnswerTurn, "answer" | "chosen"> {
  readonly state: Answer["state"];
  readonly choices: readonly StoredChoice[];
  /** Absent: 0. */
  readonly chosen?: number;
  readonly usage?: Usage;
  readonly failure?: NonNullable<Answer["failure"]>;
  readonly status?: number;
  readonly requestId?: string;
  readonly cacheMiss?: string;
  readonly times?: readonly [firstMs: number, lastMs: number];
}

interface StoredChoice {
  readonly text: StoredText;
  readonly reasoning?: StoredText;
  readonly refusal?: StoredText;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish?: NonNullable<Choice["finish"]>;
}

/** A list of chunks if the tokens' probabilities are known. */
type StoredText = string | readonly TextChunk[];

/** Returns a turn as JSON. Of an answer that is still growing, the probabilities of tokens are left out: it is stored again and again. */
export function storedTurn(turn: Turn): StoredTurn {
  if (turn.kind !== "answer") return turn;
  const { answer, chosen, ...placed } = turn;
  const { state, usage, failure, status, requestId, cacheMiss, times } = answer;
  const complete = state !== "running";
  return {
    ...placed,
    state,
    ...(chosen > 0 && { chosen }),
    choices: answer.choices.map(({ text, reasoning, refusal, calls, finish }) => ({
      text: storedText(text, complete),
      ...(!reasoning.empty && { reasoning: storedText(reasoning, complete) }),
      ...(!refusal.empty && { refusal: storedText(refusal, complete) }),
      ...(calls.length > 0 && {
        calls: calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text.toString() })),
      }),
      ...(finish !== undefined && { finish }),
    })),
    ...(usage && { usage }),
    ...(failure && { failure }),
    ...(status !== undefined && { status }),
    ...(requestId !== null && { requestId }),
    ...(cacheMiss !== undefined && { cacheMiss }),
    ...(times && { times }),
  };
}

function storedText(log: TextLog, withTokens: boolean): StoredText {
  return withTokens && log.hasTokens ? log.chunks : log.toString();
}

/** A value is not what was expected. The message names the place and both: `turns[3].text: expected a string, found 7`. */
export class InvalidFile extends Error {
  constructor(place: string, expected: string, found: unknown) {
    super(`${place}: expected ${expected}, found ${shown(found)}`);
    this.name = "InvalidFile";
  }
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Reads a turn. `place`: the turn's place in the file. Throws `InvalidFile`. */
export function readTurn(value: unknown, place: string): Turn {
  const turn = objectAt(value, place);
  const { kind } = turn;
  const placed = {
    id: idAt(turn["id"], `${place}.id`),
    parent: textAt(turn["parent"], `${place}.parent`),
    created: numberAt(turn["created"], `${place}.created`),
  };
  switch (kind) {
    case "question":
      return {
        ...placed,
        kind,
        ...(turn["role"] === "system" && { role: turn["role"] }),
        text: textAt(turn["text"], `${place}.text`),
        images: listAt(turn["images"], `${place}.images`, imageAt),
        ...(turn["files"] !== undefined && { files: listAt(turn["files"], `${place}.files`, fileAt) }),
      };
    case "results":
      return { ...placed, kind, results: listAt(turn["results"], `${place}.results`, resultAt) };
    case "answer": {
      const answer = answerAt(turn, place);
      const chosen = optional(turn["chosen"], `${place}.chosen`, numberAt) ?? 0;
      if (chosen !== 0 && answer.choices[chosen] === undefined)
        throw new InvalidFile(
          `${place}.chosen`,
          `a number below ${answer.choices.length}, the number of choices`,
          chosen,
        );
      const system = optional(turn["system"], `${place}.system`, textAt) ?? "";
      return { ...placed, kind, request: requestAt(turn["request"], `${place}.request`), system, answer, chosen };
    }
    default:
      throw new InvalidFile(`${place}.kind`, '"question", "answer" or "results"', kind);
  }
}

/** Reads turns that this browser keeps. Those that another version of the page has written are left out. */
export function readTurns(stored: readonly unknown[]): readonly Turn[] {
  return stored.flatMap((value) => {
    try {
      return [readTurn(value, "turn")];
    } catch {
      return [];
    }
  });
}

export function objectAt(value: unknown, place: string): JsonObject {
  if (!isObject(value)) throw new InvalidFile(place, "an object", value);
  return value;
}

export function listAt<T>(value: unknown, place: string, read: (value: unknown, place: string) => T): T[] {
  if (!Array.isArray(value)) throw new InvalidFile(place, "a list", value);
  return value.map((item, at) => read(item, `${place}[${at}]`));
}

export function textAt(value: unknown, place: string): string {
  if (typeof value !== "string") throw new InvalidFile(place, "a string", value);
  return value;
}

export function numberAt(value: unknown, place: string): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new InvalidFile(place, "a number that is not negative", value);
  return value;
}

export function optional<T>(value: unknown, place: string, read: (value: unknown, place: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value, place);
}

/** An image's URL. Others than `data:` are shown as links, so a script must not be among them. */
export function imageAt(value: unknown, place: string): string {
  const url = textAt(value, place);
  if (!/^(data:image\/|https?:\/\/)/i.test(url))
    throw new InvalidFile(place, "a data: URL of an image, or a URL that begins with https://", url);
  return url;
}

function fileAt(value: unknown, place: string): AttachedFile {
  const file = objectAt(value, place);
  const name = textAt(file["name"], `${place}.name`);
  if (file["data"] === undefined) return { name, text: textAt(file["text"], `${place}.text`) };
  return { name, data: fileDataAt(file["data"], `${place}.data`) };
}

/** The bytes of a file as the page attaches them. */
export function fileDataAt(value: unknown, place: string): string {
  const data = textAt(value, place);
  if (!/^data:/i.test(data)) throw new InvalidFile(place, "a data: URL", data);
  return data;
}

function idAt(value: unknown, place: string): string {
  const id = textAt(value, place);
  if (!/^[^/]{1,100}$/.test(id)) throw new InvalidFile(place, "an id of 1 to 100 characters without /", id);
  return id;
}

function resultAt(value: unknown, place: string): Result {
  const result = objectAt(value, place);
  return {
    callId: textAt(result["callId"], `${place}.callId`),
    name: textAt(result["name"], `${place}.name`),
    text: textAt(result["text"], `${place}.text`),
  };
}

function requestAt(value: unknown, place: string): RequestOptions {
  const { messages: _, ...request } = objectAt(value, place);
  try {
    JSON.stringify(request);
  } catch {
    throw new InvalidFile(place, "an object that is not nested thousands of levels deep", request);
  }
  return { ...request, model: textAt(request["model"], `${place}.model`) };
}

const states: readonly Answer["state"][] = ["running", "done", "stopped", "failed", "interrupted"];
const finishes = ["stop", "length", "tool-calls", "content-filter", "function-call"] as const;

/** Reads a word that is one of several. */
export function oneOf<T extends string>(words: readonly T[]): (value: unknown, place: string) => T {
  return (value, place) => {
    const word = words.find((word) => word === value);
    if (word === undefined)
      throw new InvalidFile(place, `one of ${words.map((word) => `"${word}"`).join(", ")}`, value);
    return word;
  };
}

function answerAt(turn: JsonObject, place: string): Answer {
  const answer = new Answer(0);
  const member = <T>(name: string, read: (value: unknown, place: string) => T): T | undefined =>
    optional(turn[name], `${place}.${name}`, read);
  answer.state = oneOf(states)(turn["state"], `${place}.state`);
  answer.choices.push(...listAt(turn["choices"], `${place}.choices`, choiceAt));
  answer.usage = member("usage", usageAt);
  answer.failure = member("failure", failureAt);
  answer.status = member("status", numberAt);
  answer.requestId = member("requestId", textAt) ?? null;
  answer.cacheMiss = member("cacheMiss", textAt);
  const times = member("times", (value, place) => listAt(value, place, numberAt));
  if (times?.[0] !== undefined && times[1] !== undefined) answer.restoreTimes([times[0], times[1]]);
  return answer;
}

function choiceAt(value: unknown, place: string): Choice {
  const stored = objectAt(value, place);
  const choice = new Choice();
  fill(choice.text, stored["text"], `${place}.text`);
  fill(choice.reasoning, stored["reasoning"] ?? "", `${place}.reasoning`);
  fill(choice.refusal, stored["refusal"] ?? "", `${place}.refusal`);
  choice.finish = optional(stored["finish"], `${place}.finish`, oneOf(finishes));
  for (const [at, value] of (
    optional(stored["calls"], `${place}.calls`, (value, place) => listAt(value, place, objectAt)) ?? []
  ).entries()) {
    const here = `${place}.calls[${at}]`;
    choice.addCall(
      textAt(value["id"], `${here}.id`),
      textAt(value["name"], `${here}.name`),
      textAt(value["arguments"], `${here}.arguments`),
    );
  }
  return choice;
}

function fill(log: TextLog, value: unknown, place: string): void {
  if (typeof value === "string") log.push(value);
  else
    for (const [at, chunk] of listAt(value, place, objectAt).entries()) {
      const tokens = listAt(chunk["tokens"], `${place}[${at}].tokens`, tokenAt);
      log.chunks.push({ text: textAt(chunk["text"], `${place}[${at}].text`), tokens });
    }
}

function tokenAt(value: unknown, place: string): TokenLogprob {
  const entry = objectAt(value, place);
  return {
    ...alternativeAt(entry, place),
    top: optional(entry["top"], `${place}.top`, (value, place) => listAt(value, place, alternativeAt)) ?? [],
  };
}

function alternativeAt(value: unknown, place: string): TokenAlternative {
  const { token, logprob } = objectAt(value, place);
  if (typeof logprob !== "number" && logprob !== null)
    throw new InvalidFile(`${place}.logprob`, "a number or null", logprob);
  return { token: textAt(token, `${place}.token`), logprob, bytes: null };
}

function usageAt(value: unknown, place: string): Usage {
  const usage = objectAt(value, place);
  const counts = (value: unknown, place: string): Record<string, number> =>
    Object.fromEntries(
      Object.entries(objectAt(value, place)).map(([name, count]) => [name, numberAt(count, `${place}.${name}`)]),
    );
  const promptDetails = optional(usage["promptDetails"], `${place}.promptDetails`, counts);
  const completionDetails = optional(usage["completionDetails"], `${place}.completionDetails`, counts);
  return {
    promptTokens: numberAt(usage["promptTokens"], `${place}.promptTokens`),
    completionTokens: numberAt(usage["completionTokens"], `${place}.completionTokens`),
    ...(promptDetails && { promptDetails }),
    ...(completionDetails && { completionDetails }),
  };
}

function failureAt(value: unknown, place: string): NonNullable<Answer["failure"]> {
  const failure = objectAt(value, place);
  const code = optional(failure["code"], `${place}.code`, textAt);
  const param = optional(failure["param"], `${place}.param`, textAt);
  return {
    message: textAt(failure["message"], `${place}.message`),
    ...(code !== undefined && { code }),
    ...(param !== undefined && { param }),
  };
}
