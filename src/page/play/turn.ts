import type { Answer, Choice } from "./answer.ts";
import type { PlayMessage, ChatBody } from "./request-body.ts";

/** One step of a conversation. */
export type Turn = QuestionTurn | AnswerTurn | ResultsTurn;

export interface QuestionTurn {
  readonly kind: "question";
  readonly id: number;
  readonly text: string;
  /** `data:` URLs. */
  readonly images: readonly string[];
}

export interface AnswerTurn {
  readonly kind: "answer";
  readonly id: number;
  /** What was asked, to the letter. */
  readonly body: ChatBody;
  readonly answer: Answer;
  /** The choice from which the conversation continues. */
  readonly chosen: number;
}

/** What the called tools gave back, by hand or canned. */
export interface ResultsTurn {
  readonly kind: "results";
  readonly id: number;
  readonly results: readonly Result[];
}

export interface Result {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
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
