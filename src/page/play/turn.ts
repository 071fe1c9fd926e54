import type { Answer, Choice } from "./answer.ts";
import type { Message } from "./message.ts";
import type { ChatBody } from "./request-body.ts";

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
  /** Which of its choices the conversation goes on from. */
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

/** The messages that a turn stands for. */
export function messagesOf(turn: Turn): readonly Message[] {
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
  return choice ? [assistantMessage(choice)] : [];
}

function assistantMessage({ text, refusal, calls }: Choice): Message {
  return {
    role: "assistant",
    content: text.empty && calls.length > 0 ? null : text.toString(),
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
