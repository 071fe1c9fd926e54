import { textOfFile } from "../../wire/apis/adapt/fit-media.ts";
import type { Answer, Choice } from "./answer.ts";
import { withSystem } from "./request-body.ts";
import type { ChatBody, ContentPart, PlayMessage } from "./request-body.ts";

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
  readonly files?: readonly AttachedFile[];
}

/** A file of a question: its text, or its bytes as a `data:` URL. */
export type AttachedFile =
  | { readonly name: string; readonly text: string }
  | { readonly name: string; readonly data: string };

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

/** Maximum length of a title made from the first message, in characters. */
const titleLength = 80;

/** Returns an id that no other tab makes. Not `randomUUID`: browsers have that only on HTTPS and localhost. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the first line of a message, shortened at a word. */
export function titleOf({ text, images, files = [] }: QuestionTurn): string {
  const line = text.trim().split("\n", 1)[0]?.trim() ?? "";
  if (line === "") return files[0]?.name ?? (images.length > 0 ? "Image" : "Conversation");
  const characters = Array.from(line.slice(0, 2 * titleLength));
  if (characters.length <= titleLength) return line;
  const cut = characters.slice(0, titleLength).join("");
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), cut.length / 2))}…`;
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

/** Whether an answer that broke off can go on: its stream is resumed, or the model continues its text. JSON has its form from the first letter. */
export function canGoOn({ answer, request }: AnswerTurn): boolean {
  const { state, status, choices } = answer;
  const brokeOff = state === "interrupted" || (state === "failed" && (status ?? 0) < 400);
  if (!brokeOff && state !== "stopped") return false;
  if (brokeOff && answer.requestId !== null) return true;
  return (state !== "failed" || choices.length > 0) && canContinue(answer, request);
}

function canContinue(answer: Answer, request: RequestOptions): boolean {
  return answer.choices.every(({ text }) => text.empty) || (answer.hasText && request["response_format"] === undefined);
}

/**
 * Returns the request that continues an answer whose text is incomplete, or asks again where there is no text; undefined: it cannot be continued.
 * `continue_final_message` is vLLM's and this server's; others take a last message of the assistant as a beginning, or begin again.
 */
export function continuationOf(turn: AnswerTurn, before: readonly Turn[]): ChatBody | undefined {
  const body = bodyOf(turn, before);
  if (!canContinue(turn.answer, turn.request)) return undefined;
  if (!turn.answer.hasText) return body;
  const content = turn.answer.choices[0]?.text.toString() ?? "";
  const messages = [...body.messages, { role: "assistant", content } as const];
  return { ...body, messages, add_generation_prompt: false, continue_final_message: true };
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
    const { text, images, files = [] } = turn;
    if (turn.role === "system") return [{ role: "system", content: text }];
    if (images.length === 0 && files.length === 0) return [{ role: "user", content: text }];
    const shown = images.map((url) => ({ type: "image_url", image_url: { url } }) as const);
    const said = text === "" ? [] : [{ type: "text", text } as const];
    return [{ role: "user", content: [...said, ...files.map(filePart), ...shown] }];
  }
  if (turn.kind === "results")
    return turn.results.map(({ callId, text }) => ({ role: "tool", tool_call_id: callId, content: text }));
  const choice = turn.answer.choices[turn.chosen];
  return choice ? [assistantMessage(choice, inCalls)] : [];
}

/** A text as the server gives it to models that take no files: every model reads it. Other files as the API has them. */
function filePart(file: AttachedFile): ContentPart {
  if ("text" in file) return { type: "text", text: textOfFile(file.name, file.text, false) };
  return { type: "file", file: { filename: file.name, file_data: file.data } };
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
