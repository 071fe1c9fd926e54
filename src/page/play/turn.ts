import type { Answer, Choice } from "./answer.ts";
import { withSystem } from "./request-body.ts";
import type { ChatBody, PlayMessage } from "./request-body.ts";

/** One step of a conversation. Steps are a tree: Edit and Ask again add another version next to the earlier one. */
export type Turn = QuestionTurn | AnswerTurn | ResultsTurn;

interface Placed {
  /** Unique among all tabs of the browser; without "/". */
  readonly id: string;
  /** The place after the previous turn (see `placeAfter`); "" for the first turn. */
  readonly parent: string;
  /** Milliseconds since 1970. Versions of a turn are in this order. */
  readonly created: number;
}

/** What the user wrote, or a system message of an imported conversation. */
export interface QuestionTurn extends Placed {
  readonly kind: "question";
  readonly role?: "system";
  readonly text: string;
  /** `data:` URLs; imported ones may also be `https:` and `http:` URLs. */
  readonly images: readonly string[];
}

export interface AnswerTurn extends Placed {
  readonly kind: "answer";
  /** The request without its messages: those are the turns before it. */
  readonly request: RequestOptions;
  /** The system prompt of the settings; "" if it was empty. */
  readonly system: string;
  readonly answer: Answer;
  /** The choice from which the conversation continues. */
  readonly chosen: number;
}

/** The results of the called tools, entered by the user or canned. */
export interface ResultsTurn extends Placed {
  readonly kind: "results";
  readonly results: readonly Result[];
}

export interface Result {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

/** The members of a request, except `messages`. */
export interface RequestOptions {
  readonly model: string;
  readonly [name: string]: unknown;
}

/** Returns the place after a turn. Each choice of an answer has its own continuations. */
export function placeAfter(turn: Turn): string {
  return turn.kind === "answer" ? `${turn.id}/${turn.chosen}` : turn.id;
}

/** Returns all places that a turn can be continued from. */
export function placesAfter(turn: Turn): readonly string[] {
  if (turn.kind !== "answer") return [turn.id];
  return Array.from({ length: Math.max(1, turn.answer.choices.length) }, (_, choice) => `${turn.id}/${choice}`);
}

/** Returns the request of an answer. `before`: the turns from the first one to the one before the answer. */
export function bodyOf({ request, system }: AnswerTurn, before: readonly Turn[]): ChatBody {
  const { model, ...others } = request;
  return { model, ...others, messages: withSystem(system, messagesOf(before)) };
}

/**
 * Returns the messages of a conversation. Reasoning goes back with the calls that it led to, until the answer to the question is
 * there: APIs and templates want it in the middle of a round of calls, and leave it out once the next question is asked
 * (api-docs.deepseek.com, "Thinking Mode"; OpenAI's harmony format).
 */
export function messagesOf(turns: readonly Turn[]): PlayMessage[] {
  const question = turns.findLastIndex(({ kind }) => kind === "question");
  return turns.flatMap((turn, at) => messagesOfTurn(turn, at > question));
}

function messagesOfTurn(turn: Turn, inCalls: boolean): readonly PlayMessage[] {
  if (turn.kind === "question") {
    const { text, images } = turn;
    if (turn.role === "system") return [{ role: "system", content: text }];
    if (images.length === 0) return [{ role: "user", content: text }];
    const shown = images.map((url) => ({ type: "image_url", image_url: { url } }) as const);
    const said = text === "" ? [] : [{ type: "text", text } as const];
    return [{ role: "user", content: [...said, ...shown] }];
  }
  if (turn.kind === "results")
    return turn.results.map(({ callId, text }) => ({ role: "tool", tool_call_id: callId, content: text }));
  const choice = turn.answer.choices[turn.chosen];
  return choice ? [assistantMessage(choice, inCalls)] : [];
}

function assistantMessage({ text, reasoning, refusal, calls }: Choice, inCalls: boolean): PlayMessage {
  return {
    role: "assistant",
    content: text.empty && calls.length > 0 ? null : text.toString(),
    ...(inCalls && calls.length > 0 && !reasoning.empty && { reasoning_content: reasoning.toString() }),
    ...(!refusal.empty && { refusal: refusal.toString() }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: text }) => ({
        id,
        type: "function" as const,
        function: { name, arguments: text.toString() },
      })),
    }),
  };
}
