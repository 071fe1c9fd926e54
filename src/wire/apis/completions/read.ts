import type { GenerationEvent } from "../../core/events.ts";
import { readChatContent } from "../chat/read.ts";
import { ChoicesReader } from "../tolerant/choices-reader.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import type { ChoiceKind } from "../tolerant/choices-reader.ts";
import { type ChoiceState, newChoice } from "../tolerant/answer-choices.ts";
import { readLogprobs } from "../tolerant/read-logprobs.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

const completionChoices: ChoiceKind<ChoiceState> = {
  chunkObject: "text_completion",
  bodyObject: "text_completion",
  create: newChoice,
  // A completion has no role, so its first chunk looks like any other.
  begins: () => false,
  read: readCompletionChoice,
  holePath: (raw, event) =>
    event.type !== "text-delta" || raw["logprobs"] || raw["text"] !== event.text
      ? null
      : { path: ["text"], kind: "text" },
  callsOf: () => undefined,
  isLegacyCall: () => false,
};

/** Reads a legacy completion of any server that is compatible with OpenAI's API into generation events. */
export function completionReader(options: AnswerReaderOptions): ChoicesReader<ChoiceState> {
  return new ChoicesReader(completionChoices, options);
}

function readCompletionChoice(
  raw: JsonObject,
  state: ChoiceState,
  reader: ChoicesReader<ChoiceState>,
  out: GenerationEvent[],
): boolean {
  const { repairs } = reader;
  const { choice } = state;
  const text = textOf(raw, repairs);
  const logprobs = readLogprobs(raw["logprobs"], text, repairs)?.text ?? [];
  if (text === "" && logprobs.length === 0) {
    if (raw["finish_reason"] === null) repairs.note("empty-delta");
    return false;
  }
  reader.start(state, out);
  out.push({ type: "text-delta", choice, text, ...(logprobs.length > 0 && { logprobs }) });
  return true;
}

/** Returns `text`, or the content of a delta or message, which servers send that support only chat. */
function textOf(raw: JsonObject, repairs: RepairLog): string {
  if (typeof raw["text"] === "string") return raw["text"];
  const delta = [raw["delta"], raw["message"]].find(isObject) ?? { content: raw["text"] };
  if (raw["delta"] !== undefined || raw["message"] !== undefined) repairs.note("content");
  return readChatContent(delta, repairs).text;
}
