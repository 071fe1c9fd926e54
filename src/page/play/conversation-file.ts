import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import { Answer, Choice } from "./answer.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import { InvalidFile, listOf, numberAt, objectAt, optional, parsedFile, recordOf, shape, textAt } from "./readers.ts";
import { fileDataAt, imageAt, readTurn, storedTurn } from "./stored-turn.ts";
import { TurnTree } from "./turn-tree.ts";
import { newId, placeAfter, titleOf } from "./turn.ts";
import type { AttachedFile, QuestionTurn, Result, Turn } from "./turn.ts";

/** A conversation of a file: its record without an id, and its turns, each of which follows another one or is first. */
export interface FiledConversation {
  readonly record: Omit<ConversationRecord, "id">;
  readonly turns: readonly Turn[];
}

const format = "truewire/conversations";

/** Returns conversations with all versions as JSON (docs/page.md, "Files of conversations"). */
export function exportedText(conversations: readonly FiledConversation[]): string {
  const filed = conversations.map(({ record: { title, created, changed, shown }, turns }) => ({
    title,
    created,
    changed,
    shown,
    turns: turns.map(storedTurn),
  }));
  return `${JSON.stringify({ format, version: 1, conversations: filed }, null, 2)}\n`;
}

/**
 * Reads exported conversations, a list of OpenAI's chat messages, or an object with such `messages` (a request). Throws an error for people
 * that names the place in the file.
 */
export function readFile(text: string, now: number): readonly FiledConversation[] {
  const file = parsedFile(text);
  if (Array.isArray(file)) return [readMessages(file, "", now)];
  if (isObject(file) && file["format"] === format) {
    if (file["version"] !== 1) throw new InvalidFile("version", "1", file["version"]);
    const conversations = listOf(readConversation)(file["conversations"], "conversations");
    if (conversations.length === 0) throw new InvalidFile("conversations", "at least one conversation", []);
    return conversations;
  }
  if (isObject(file) && Array.isArray(file["messages"])) {
    const model = typeof file["model"] === "string" ? file["model"] : "";
    return [readMessages(file["messages"], model, now)];
  }
  throw new InvalidFile(
    "The file",
    `an object with "format": "${format}", a list of messages, or an object with "messages"`,
    file,
  );
}

function readConversation(value: unknown, place: string): FiledConversation {
  const filed = objectAt(value, place);
  const turns = listOf(readTurn)(filed["turns"], `${place}.turns`);
  if (turns.length === 0) throw new InvalidFile(`${place}.turns`, "at least one turn", turns);
  const ids = new Set<string>();
  for (const [at, { id }] of turns.entries()) {
    if (ids.has(id)) throw new InvalidFile(`${place}.turns[${at}].id`, "an id that no other turn has", id);
    ids.add(id);
  }
  const [lost] = new TurnTree().addAll(turns);
  if (lost) {
    const at = turns.findIndex(({ id }) => id === lost.id);
    const expected = '"", the id of a turn, or the id of an answer with the number of its choice ("ID/0")';
    throw new InvalidFile(`${place}.turns[${at}].parent`, expected, lost.parent);
  }
  const record = recordAt(value, place);
  return { record: { ...record, shown: record.shown ?? {} }, turns };
}

const recordAt = shape<{ title: string; created: number; changed: number; shown?: Record<string, string> }>({
  title: textAt,
  created: numberAt,
  changed: numberAt,
  shown: optional(recordOf(textAt)),
});

/** Reads a list of messages as one conversation without versions. `model`: of all its answers; "" if unknown. */
function readMessages(messages: readonly unknown[], model: string, now: number): FiledConversation {
  if (messages.length === 0) throw new InvalidFile("messages", "at least one message", messages);
  const turns: Turn[] = [];
  /** The names of calls by their ids: results do not have them. */
  const names = new Map<string, string>();
  for (const [at, value] of messages.entries()) {
    const place = `messages[${at}]`;
    const message = objectAt(value, place);
    const last = turns.at(-1);
    const placed = { id: newId(), parent: last ? placeAfter(last) : "", created: now };
    const { role } = message;
    switch (role) {
      case "system":
      case "developer":
        turns.push({ ...placed, kind: "question", role: "system", text: textIn(message, place), images: [] });
        break;
      case "user":
        turns.push({ ...placed, kind: "question", ...partsIn(message["content"], `${place}.content`, true) });
        break;
      case "assistant": {
        const answer = new Answer(0);
        answer.state = "done";
        answer.choices.push(choiceIn(message, place));
        for (const { id, name } of answer.choices[0]?.calls ?? []) names.set(id, name);
        turns.push({ ...placed, kind: "answer", request: { model }, system: "", answer, chosen: 0 });
        break;
      }
      case "tool": {
        const callId = textAt(message["tool_call_id"], `${place}.tool_call_id`);
        const result: Result = { callId, name: names.get(callId) ?? "tool", text: textIn(message, place) };
        // The results of one answer are one turn.
        if (last?.kind === "results") turns.splice(-1, 1, { ...last, results: [...last.results, result] });
        else turns.push({ ...placed, kind: "results", results: [result] });
        break;
      }
      default:
        throw new InvalidFile(`${place}.role`, '"system", "developer", "user", "assistant" or "tool"', role);
    }
  }
  const first = turns.find((turn) => turn.kind === "question" && turn.role !== "system");
  const title = first?.kind === "question" ? titleOf(first) : "Imported messages";
  return { record: { title, created: now, changed: now, shown: {} }, turns };
}

function textIn(message: JsonObject, place: string): string {
  return partsIn(message["content"], `${place}.content`, false).text;
}

function partsIn(content: unknown, place: string, withMedia: boolean): Pick<QuestionTurn, "text" | "images" | "files"> {
  if (typeof content === "string") return { text: content, images: [] };
  if (!Array.isArray(content)) throw new InvalidFile(place, "a string or a list of parts", content);
  const texts: string[] = [];
  const images: string[] = [];
  const files: AttachedFile[] = [];
  for (const [at, value] of content.entries()) {
    const part = objectAt(value, `${place}[${at}]`);
    if (part["type"] === "text") texts.push(textAt(part["text"], `${place}[${at}].text`));
    else if (withMedia && part["type"] === "image_url") {
      const image = objectAt(part["image_url"], `${place}[${at}].image_url`);
      images.push(imageAt(image["url"], `${place}[${at}].image_url.url`));
    } else if (withMedia && part["type"] === "file") {
      const file = objectAt(part["file"], `${place}[${at}].file`);
      files.push({
        name: optional(textAt)(file["filename"], `${place}[${at}].file.filename`) ?? "file",
        data: fileDataAt(file["file_data"], `${place}[${at}].file.file_data`),
      });
    } else {
      const expected = withMedia ? '"text", "image_url" or "file"' : '"text"';
      throw new InvalidFile(`${place}[${at}].type`, expected, part["type"]);
    }
  }
  return { text: texts.join(""), images, ...(files.length > 0 && { files }) };
}

function choiceIn(message: JsonObject, place: string): Choice {
  const choice = new Choice();
  const { content } = message;
  if (content !== null && content !== undefined) choice.text.push(textIn(message, place));
  const { reasoning_content: reasoning = "", refusal = "", tool_calls: calls = [] } = messageAt(message, place);
  choice.reasoning.push(reasoning);
  choice.refusal.push(refusal);
  for (const { id, function: made } of calls) choice.addCall(id, made.name, made.arguments);
  if (choice.calls.length > 0) choice.finish = "tool-calls";
  return choice;
}

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

const messageAt = shape<{ reasoning_content?: string; refusal?: string; tool_calls?: Call[] }>({
  reasoning_content: optional(textAt),
  refusal: optional(textAt),
  tool_calls: optional(
    listOf(shape<Call>({ id: textAt, function: shape<Call["function"]>({ name: textAt, arguments: textAt }) })),
  ),
});
