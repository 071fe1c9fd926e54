import type { RepairPlace } from "../../core/inspection.ts";
import { type AdaptationName, adaptationNames, textOfAdaptation } from "../adapt/adaptation-names.ts";

/** A kind of repair of an answer, or of adaptation of its request. Reported by `truewire repair` on stderr, and in a server's log. */
export interface Repair {
  readonly id: RepairId;
  readonly sentence: string;
  readonly count: number;
}

export type RepairId = keyof typeof repairs | AdaptationName;

/** One sentence for each kind of repair, in the order of reports. No id is one of an adaptation: both are reported together. */
const repairs = {
  bom: "A byte order mark preceded the stream.",
  "line-ends": "Lines ended in CR or CRLF instead of LF.",
  "no-space": 'The space after "data:" was missing.',
  comment: "A comment line was dropped.",
  "event-name": "An event had a name; OpenAI's chunks have none.",
  "unknown-field": "A line that is not a field of an event stream was dropped.",
  "bare-json": 'A JSON line had no "data:".',
  "no-blank-line": "An event did not end with a blank line.",
  "keep-alive": "An event without content was dropped.",
  "not-a-number": "NaN or Infinity, which JSON does not have, was read as null.",
  "json-body": "A whole JSON answer came where a stream was expected.",
  "stream-body": "A stream came where a JSON answer was expected.",
  "no-done": "The closing [DONE] was missing.",
  "after-done": "Something followed [DONE] and was dropped.",
  "no-id": "A chunk had no id.",
  "other-id": "A chunk's id differed from the first chunk's.",
  "other-created": "A chunk's creation time differed from the first chunk's.",
  created: "The creation time was not a whole number of seconds.",
  object: "The object name was wrong or missing.",
  "no-choices": "A chunk had no choices.",
  "no-model": "A chunk did not name its model.",
  "shared-chunk": "A chunk carried several choices.",
  "choice-index": "A choice had no usable index.",
  "surplus-choice": "A choice that was not requested was dropped.",
  "no-role": "The role was missing at the start.",
  "late-role": "The role came after the first delta.",
  "role-again": "The role was repeated.",
  "mixed-delta": "One delta carried several kinds of content.",
  "empty-delta": "A delta without content was dropped.",
  content: "Content was not a string.",
  "reasoning-field": 'Reasoning came under another name than "reasoning_content".',
  "call-index": "A tool call had no index, or one out of sequence.",
  "call-id": "A tool call had no id, or one that was already used.",
  "changing-call-id": "A tool call's id changed between its fragments.",
  "call-name": "A tool call's name came late, repeated or empty.",
  "call-arguments": "A tool call's arguments were not a string.",
  "no-arguments": "A tool call without arguments was given {}.",
  "repeated-arguments": "A tool call's complete arguments were repeated.",
  "interleaved-calls": "Fragments of several tool calls were interleaved.",
  "nameless-call": "A tool call without a name became text.",
  "legacy-call": "A call came in the legacy function_call form.",
  "finish-with-content": "A finish reason was in a chunk with content.",
  "early-finish": "Content came after a finish reason.",
  "repeated-finish": "A finish reason was repeated.",
  "finish-reason": "The finish reason was not one of OpenAI's.",
  "finish-calls": 'The finish reason did not say "tool_calls" though calls were made.',
  "finish-without-calls": 'The finish reason said "tool_calls" though there was a text and no call.',
  "no-finish": "The finish reason was missing before [DONE].",
  "usage-place": "Usage was not in the last chunk.",
  "usage-value": "Usage held zeros, negative or missing counts.",
  "no-event-name": "An event had no name; those of Responses are named after their type.",
  "other-event-name": "An event had another name than its type.",
  "no-created": "The event response.created was missing.",
  "no-completed": "The event that ends a response was missing.",
  sequence: "An event had no sequence number, or one out of sequence.",
  "item-index": "An item had no usable output_index, or an event named another item than its own.",
  "item-added": "Something of an item came before the item was announced.",
  "item-done": "An item was not closed.",
  "item-order": "Events of several items were interleaved.",
  "whole-text": "A text, or its end, came whole where its deltas were missing.",
  "other-text": "A text's deltas and its whole differed; the deltas count.",
  "logprobs-shape": "Logprobs had another shape than OpenAI's.",
  "logprobs-other-tokens": "Logprobs had tokens that are not in the text, such as those of the reasoning.",
  "second-call": "There was a second call, although the request wants at most one.",
  "message-start": "The message did not begin, or began twice.",
  "block-start": "A block did not say what it is.",
  "block-order": "Blocks overlapped, or had no end of their own.",
  "block-index": "A block had no index, or one out of sequence.",
  "delta-kind": "A delta was not of the kind of its block.",
  "event-type": "An event of no known type was dropped.",
  "message-delta": "The end of the message came in several events.",
  "stop-reason": "The stop reason was missing, or not one of Anthropic's.",
  "message-stop": "The closing message_stop was missing.",
  "after-message": "Something followed the end of the message and was dropped.",
  "json-fence": "JSON was in a Markdown fence, or after reasoning or a byte order mark, which were removed.",
  "json-other-text": "The text of an answer that must be JSON was not only JSON.",
  "schema-repaired": "A JSON text did not fit the client's schema, and its types were corrected.",
  "schema-repeated": "An answer did not fit the client's schema, and was requested again.",
  "schema-violation": "A JSON text did not fit the client's schema, and could not be corrected.",
  "schema-unchecked": "A JSON text could not be checked against the client's schema.",
  "prompt-truncated": "The server had cut the prompt without an error.",
} as const satisfies Readonly<Record<string, string>> & { readonly [Name in AdaptationName]?: never };

const sentences: Readonly<Record<RepairId, string>> = {
  ...repairs,
  ...(Object.fromEntries(adaptationNames.map((name) => [name, textOfAdaptation(name).sentence])) as Record<
    AdaptationName,
    string
  >),
};

/** The maximum number of recorded places in one answer. */
const maxPlaces = 1000;

/** The sentence for a kind of repair; undefined: unknown kind. */
export function sentenceOfRepair(id: string): string | undefined {
  return Object.hasOwn(sentences, id) ? sentences[id as RepairId] : undefined;
}

/** Counts repairs. */
export class RepairLog {
  /** Absent until the first repair: most answers need none. */
  #counts: Map<RepairId, number> | undefined;
  #places: RepairPlace[] | undefined;
  /** The start of the current frame, in characters of the answer. Set only while places are recorded. */
  at = 0;

  /** The number of all repairs. */
  total = 0;

  note(id: RepairId): void {
    const counts = (this.#counts ??= new Map());
    counts.set(id, (counts.get(id) ?? 0) + 1);
    this.total++;
    if (this.#places && this.#places.length < maxPlaces) this.#places.push({ id, at: this.at });
  }

  get keepsPlaces(): boolean {
    return this.#places !== undefined;
  }

  /** Records the place of each further repair. Returns the list, which grows. */
  keepPlaces(): readonly RepairPlace[] {
    return (this.#places ??= []);
  }

  list(): readonly Repair[] {
    const counts = this.#counts;
    if (!counts) return [];
    const ids = Object.keys(sentences) as RepairId[];
    return ids.flatMap((id) => {
      const count = counts.get(id);
      return count === undefined ? [] : [{ id, sentence: sentences[id], count }];
    });
  }
}
