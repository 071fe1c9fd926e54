import type { Message, Tool } from "../core/message.ts";
import { formatNamed, recognizeFormat } from "./known.ts";
import type { Call, Format, PlainFormat, Reasoning } from "./format.ts";
import { learnFormat } from "./learn-format.ts";
import { plainText } from "./plain-text.ts";
import { readsBack, type Render, renderCalls } from "./read-back.ts";

/** What is needed of a chat template: its source, and how it writes a conversation. `ChatTemplate` is one. */
export interface WritingTemplate {
  readonly source: string;
  /** May throw where the template refuses the conversation. */
  render(input: {
    readonly messages: readonly Message[];
    readonly tools: readonly Tool[];
    readonly options: { readonly addGenerationPrompt: boolean };
    readonly now: Date;
  }): { readonly text: string };
}

/** What a template's metadata says of the format: variables that tabbyAPI reads from a template. */
export interface FormatMetadata {
  /** A format's name: `tool_call_format`. */
  readonly toolCallFormat?: string;
  /** What stands before the calls: `tool_start`. */
  readonly toolStart?: string;
  /** What stands behind the calls: `tool_end`. */
  readonly toolEnd?: string;
}

/**
 * The format that a model with this chat template writes. The metadata decides, where it names one. Else a format that is recognised by
 * its markers must read back a call that the template renders; if it does not (a vendor renamed the markers), or none is recognised,
 * the format is learned from how the template writes a call. A template that writes no calls has the general format, JSON without
 * markers. Never throws.
 */
export function findFormat(template: WritingTemplate, metadata: FormatMetadata): Format {
  return formatInMetadata(metadata) ?? formatInSource(template);
}

/** By name, or JSON between the markers that the metadata gives; undefined: it names no known format. */
function formatInMetadata({ toolCallFormat, toolStart, toolEnd }: FormatMetadata): Format | undefined {
  const named = toolCallFormat === undefined ? undefined : formatNamed(toolCallFormat);
  if (toolStart === undefined) return named;
  const format = named ?? formatNamed("json");
  if (format?.kind !== "plain") return format;
  return { ...format, section: { open: [toolStart], close: toolEnd === undefined ? [] : [toolEnd] } };
}

function formatInSource(template: WritingTemplate): Format {
  const render: Render = (messages, tools, addGenerationPrompt) =>
    template.render({ messages, tools, options: { addGenerationPrompt }, now: new Date(0) }).text;
  const recognized = recognizeFormat(template.source);
  const turn = renderCalls(render, 1);
  const base = recognized ?? formatNamed("generic-json") ?? plainText;
  if (turn === null || (recognized && readsBack(recognized, turn))) return base;
  const learned = learnFormat(render);
  if (!learned) return base;
  return base.kind === "plain" ? combined(base, learned) : learned;
}

/**
 * What the model is known for, with what its template shows. A call without markers is how a template shows one that has no syntax for
 * it: the model writes its own, and both are read. Else the template's markers are the model's.
 */
function combined(known: PlainFormat, learned: PlainFormat): PlainFormat {
  const [call] = learned.calls;
  if (call && !call.open && !learned.section) return withCall(known, call);
  if (!known.reasoning) return learned;
  if (!learned.reasoning) return { ...learned, reasoning: known.reasoning };
  const opener = learned.section?.open ?? call?.open;
  const reasoning: Reasoning = { ...known.reasoning, open: learned.reasoning.open, close: learned.reasoning.close };
  return { ...learned, reasoning: reasoning.endedBy && opener ? { ...reasoning, endedBy: opener } : reasoning };
}

/** A format that reads this call as well. */
function withCall(format: PlainFormat, call: Call): PlainFormat {
  const shape = JSON.stringify(call);
  const known = format.calls.some((other) => JSON.stringify(other) === shape);
  return known ? format : { ...format, calls: [...format.calls, call] };
}
