import type { TokenAlternative, TokenLogprob, Usage } from "../../wire/core/events.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import { Answer, Choice } from "./answer.ts";
import type { HostedCall, Source } from "./answer.ts";
import { InvalidFile, listOf, numberAt, objectAt, oneOf, optional, recordOf, shape, textAt } from "./readers.ts";
import type { Reader } from "./readers.ts";
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
  readonly hostedCalls?: readonly StoredHostedCall[];
  readonly sources?: readonly Source[];
  readonly finish?: NonNullable<Choice["finish"]>;
}

type StoredHostedCall = Omit<HostedCall, "startedAt" | "ms"> & { readonly ms?: number };

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
    choices: answer.choices.map(({ text, reasoning, refusal, calls, hostedCalls, sources, finish }) => ({
      text: storedText(text, complete),
      ...(!reasoning.empty && { reasoning: storedText(reasoning, complete) }),
      ...(!refusal.empty && { refusal: storedText(refusal, complete) }),
      ...(calls.length > 0 && {
        calls: calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text.toString() })),
      }),
      ...(hostedCalls.length > 0 && {
        hostedCalls: hostedCalls.map(({ id, name, arguments: text, status, output, ms }) => ({
          id,
          name,
          arguments: text,
          status,
          output,
          ...(ms !== undefined && { ms }),
        })),
      }),
      ...(sources.size > 0 && { sources: [...sources.values()] }),
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

/** Reads a turn. `place`: the turn's place in the file. Throws `InvalidFile`. */
export function readTurn(value: unknown, place: string): Turn {
  const turn = objectAt(value, place);
  const { kind } = turn;
  const placed = placedAt(turn, place);
  switch (kind) {
    case "question":
      return { ...placed, kind, ...(turn["role"] === "system" && { role: turn["role"] }), ...questionAt(turn, place) };
    case "results":
      return { ...placed, kind, ...resultsAt(turn, place) };
    case "answer": {
      const answer = answerAt(turn, place);
      const { request, system = "", chosen = 0 } = requestedAt(turn, place);
      if (chosen !== 0 && answer.choices[chosen] === undefined)
        throw new InvalidFile(
          `${place}.chosen`,
          `a number below ${answer.choices.length}, the number of choices`,
          chosen,
        );
      return { ...placed, kind, request, system, answer, chosen };
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

/** An image's URL. Others than `data:` are shown as links, so a script must not be among them. */
export const imageAt: Reader<string> = (value, place) => {
  const url = textAt(value, place);
  if (!/^(data:image\/|https?:\/\/)/i.test(url))
    throw new InvalidFile(place, "a data: URL of an image, or a URL that begins with https://", url);
  return url;
};

/** The bytes of a file as the page attaches them. */
export const fileDataAt: Reader<string> = (value, place) => {
  const data = textAt(value, place);
  if (!/^data:/i.test(data)) throw new InvalidFile(place, "a data: URL", data);
  return data;
};

const fileAt: Reader<AttachedFile> = (value, place) =>
  objectAt(value, place)["data"] === undefined
    ? shape<{ name: string; text: string }>({ name: textAt, text: textAt })(value, place)
    : shape<{ name: string; data: string }>({ name: textAt, data: fileDataAt })(value, place);

const placedAt = shape<Pick<Turn, "id" | "parent" | "created">>({
  id: (value, place) => {
    const id = textAt(value, place);
    if (!/^[^/]{1,100}$/.test(id)) throw new InvalidFile(place, "an id of 1 to 100 characters without /", id);
    return id;
  },
  parent: textAt,
  created: numberAt,
});

const questionAt = shape<Pick<QuestionTurn, "text" | "images" | "files">>({
  text: textAt,
  images: listOf(imageAt),
  files: optional(listOf(fileAt)),
});

const resultsAt = shape<Pick<ResultsTurn, "results">>({
  results: listOf(shape<Result>({ callId: textAt, name: textAt, text: textAt })),
});

const requestedAt = shape<{ request: RequestOptions; system?: string; chosen?: number }>({
  request: (value, place) => {
    const { messages: _, ...request } = objectAt(value, place);
    try {
      JSON.stringify(request);
    } catch {
      throw new InvalidFile(place, "an object that is not nested thousands of levels deep", request);
    }
    return { ...request, model: textAt(request["model"], `${place}.model`) };
  },
  system: optional(textAt),
  chosen: optional(numberAt),
});

const alternative = {
  token: textAt,
  logprob: (value: unknown, place: string): number | null => {
    if (typeof value !== "number" && value !== null) throw new InvalidFile(place, "a number or null", value);
    return value;
  },
  bytes: () => null,
};

const tokenAt = shape<TokenLogprob>({
  ...alternative,
  top: (value, place) => optional(listOf(shape<TokenAlternative>(alternative)))(value, place) ?? [],
});

const finishes = ["stop", "length", "tool-calls", "content-filter", "function-call"] as const;
const storedTextAt: Reader<StoredText> = (value, place) =>
  typeof value === "string" ? value : listOf(shape<TextChunk>({ text: textAt, tokens: listOf(tokenAt) }))(value, place);

const linkAt: Reader<string> = (value, place) => {
  const url = textAt(value, place);
  if (!/^https?:\/\//i.test(url)) throw new InvalidFile(place, "a URL that begins with https://", url);
  return url;
};

const choiceAt = shape<StoredChoice>({
  text: storedTextAt,
  reasoning: optional(storedTextAt),
  refusal: optional(storedTextAt),
  calls: optional(
    listOf(shape<{ id: string; name: string; arguments: string }>({ id: textAt, name: textAt, arguments: textAt })),
  ),
  hostedCalls: optional(
    listOf(
      shape<StoredHostedCall>({
        id: textAt,
        name: textAt,
        arguments: textAt,
        status: oneOf<HostedCall["status"]>(["running", "completed", "failed"]),
        output: textAt,
        ms: optional(numberAt),
      }),
    ),
  ),
  sources: optional(listOf(shape<Source>({ url: linkAt, title: textAt }))),
  finish: optional(oneOf(finishes)),
});

const usageAt = shape<Omit<Usage, "totalTokens" | "cacheWriteDetails">>({
  promptTokens: numberAt,
  completionTokens: numberAt,
  promptDetails: optional(recordOf(numberAt)),
  completionDetails: optional(recordOf(numberAt)),
});

const storedAnswerAt = shape<Omit<StoredAnswerTurn, keyof ReturnType<typeof placedAt> | "kind" | "request" | "system">>(
  {
    state: oneOf<Answer["state"]>(["running", "done", "stopped", "failed", "interrupted"]),
    choices: listOf(choiceAt),
    chosen: optional(numberAt),
    usage: optional(usageAt),
    failure: optional(
      shape<NonNullable<Answer["failure"]>>({ message: textAt, code: optional(textAt), param: optional(textAt) }),
    ),
    status: optional(numberAt),
    requestId: optional(textAt),
    cacheMiss: optional(textAt),
    times: optional((value, place) => listOf(numberAt)(value, place) as unknown as [number, number]),
  },
);

function answerAt(turn: JsonObject, place: string): Answer {
  const { choices, times, requestId = null, chosen: _, ...members } = storedAnswerAt(turn, place);
  const answer = Object.assign(new Answer(0), members, { requestId });
  answer.choices.push(...choices.map(choiceOf));
  if (times?.[0] !== undefined && times[1] !== undefined) answer.restoreTimes([times[0], times[1]]);
  return answer;
}

function choiceOf(stored: StoredChoice): Choice {
  const { text, reasoning = "", refusal = "", calls = [], hostedCalls = [], sources = [], finish } = stored;
  const choice = new Choice();
  for (const call of hostedCalls) choice.hostedCalls.push({ ms: undefined, ...call, startedAt: 0 });
  for (const source of sources) choice.sources.set(source.url, source);
  fill(choice.text, text);
  fill(choice.reasoning, reasoning);
  fill(choice.refusal, refusal);
  choice.finish = finish;
  for (const call of calls) choice.addCall(call.id, call.name, call.arguments);
  return choice;
}

function fill(log: TextLog, text: StoredText): void {
  if (typeof text === "string") log.push(text);
  else log.chunks.push(...text);
}
