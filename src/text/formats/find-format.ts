import type { Message, Tool } from "../../wire/core/message.ts";
import { formatNamed, recognizeFormat } from "./known.ts";
import { type CallSyntax, type Format, type PlainFormat, plainText, type Reasoning } from "./format.ts";
import { learnFormat } from "./learn-format.ts";
import { readsBack, type Render, renderCalls } from "./read-back.ts";

/**
 * The part of a chat template that format detection needs: its source, and how it renders a conversation. Implemented by `ChatTemplate`.
 */
export interface WritingTemplate {
  readonly source: string;
  /** May throw if the template refuses the conversation. */
  render(input: {
    readonly messages: readonly Message[];
    readonly tools: readonly Tool[];
    readonly options: { readonly addGenerationPrompt: boolean };
    readonly now: Date;
  }): { readonly text: string };
}

/** The variables in a template's metadata that describe the format, with tabbyAPI's names. */
interface FormatMetadata {
  /** `tool_call_format`: the name of a format. */
  readonly toolCallFormat?: string;
  /** `tool_start`: the marker before the calls. */
  readonly toolStart?: string;
  /** `tool_end`: the marker after the calls. */
  readonly toolEnd?: string;
}

/**
 * Finds the format that a model with this chat template writes. If the metadata names a format, that is the result. Otherwise a format that
 * is recognized by its markers must read back a call that the template renders. If it does not (a vendor renamed the markers), or none is
 * recognized, the format is learned from how the template renders a call. For a template that renders no calls, the result is the general
 * format, JSON without markers. Never throws.
 */
export function findFormat(template: WritingTemplate, metadata: FormatMetadata): Format {
  return formatInMetadata(metadata) ?? formatInSource(template);
}

/** The format that the metadata names, or JSON between the markers in the metadata. undefined if neither is known. */
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
 * Combines a known format with what its template shows. A template that renders calls without markers has no syntax for them: the model
 * writes its own, and both are read. Otherwise the markers of the template apply.
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

/** The format with one more syntax for calls. */
function withCall(format: PlainFormat, call: CallSyntax): PlainFormat {
  const shape = JSON.stringify(call);
  const known = format.calls.some((other) => JSON.stringify(other) === shape);
  return known ? format : { ...format, calls: [...format.calls, call] };
}
