import { findFormat } from "../../text/formats/find-format.ts";
import type { Format } from "../../text/formats/format.ts";
import { knownNames, requireFormat } from "../../text/formats/known.ts";
import { JobReader } from "../../text/formats/parse-job.ts";
import { Accumulator } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { Tool, ToolCall } from "../../wire/core/message.ts";
import { ChatTemplate } from "../../text/templates/chat-template.ts";
import { templateMetadata } from "../../text/templates/template-metadata.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import { random } from "../../wire/random/random.ts";

/** How a model writes, and what is known of its prompt. One of `format` and `template` is needed. */
export interface ModelTextOptions {
  /** How the model writes: a name (`formatNames` lists them), or a description. */
  readonly format?: string | Format;
  /** The model's chat template, from which its format is found as `truewire serve` finds it. */
  readonly template?: string;
  /** The tools of the request: they type untyped values, and a call of another name remains text. Absent: every name is a call. */
  readonly tools?: readonly Tool[];
  /** The end of the prompt, from where the assistant's turn begins (`<think>\n`): reasoning that begins there continues in the text. */
  readonly prefix?: string;
  /** Whether the model was asked to think; absent: not known. */
  readonly thinking?: boolean;
  /** Default true; false: reasoning and its markers stay in the content. */
  readonly separateReasoning?: boolean;
  /** Default: `call_` and 24 random characters. */
  readonly newCallId?: () => string;
}

/** What a model's text says, by kind. */
export interface ParsedMessage {
  /** null when only calls were made. */
  readonly content: string | null;
  readonly reasoning?: string;
  /** Those that ended; a call that was cut off is not among them. */
  readonly toolCalls?: readonly ToolCall[];
}

/** The names of the formats that are known. Several may name the same one. */
export const formatNames: readonly string[] = knownNames;

/**
 * Reads what a model wrote, as it came out of the tokenizer, by kind: content, reasoning, tool calls. What looks like a call and
 * cannot be one is content; arguments that cannot be parsed are kept as they are (`parseArguments` says so). Throws a RangeError for a
 * format that is unknown, a TypeError where neither format nor template is given; never for the text.
 *
 * @example
 * import { parseModelText } from "truewire";
 *
 * const text = '<think>Easy.</think>Let me see.<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>';
 * const message = parseModelText(text, { format: "hermes" });
 * console.log(message.reasoning, "|", message.content);
 * // → Easy. | Let me see.
 * console.log(message.toolCalls[0].name, message.toolCalls[0].arguments);
 * // → add {"a": 1}
 */
export function parseModelText(text: string, options: ModelTextOptions): ParsedMessage {
  const parser = new ModelTextParser(options);
  const accumulator = new Accumulator();
  accumulator.add(parser.push(text));
  accumulator.add(parser.end());
  const [choice] = accumulator.result().choices;
  if (!choice) return { content: "" };
  const { text: content, reasoning } = choice;
  const toolCalls = choice.toolCalls
    .filter(({ status }) => status !== null)
    .map(({ id, name, arguments: written, kind }): ToolCall => {
      return { id, name, arguments: written, ...(kind === "custom" && { kind }) };
    });
  return {
    content: content ?? (toolCalls.length > 0 ? null : ""),
    ...(reasoning !== null && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  };
}

/**
 * Parses text while the model writes it, in chunks of any size: the events do not depend on the chunks. Work is linear in the text, and
 * only what may still become a marker is held back. Throws as `parseModelText` does, when it is made.
 *
 * @example
 * import { ModelTextParser } from "truewire";
 *
 * const parser = new ModelTextParser({ format: "hermes" });
 * for (const chunk of ["Hi <tool", '_call>{"name": "f", "argum', 'ents": {}}</tool_call>']) {
 *   for (const event of parser.push(chunk)) console.log(event.type);
 * }
 * console.log(parser.end().map(({ type }) => type).join(" "));
 * // → start
 * // → text-delta
 * // → tool-call-start
 * // → tool-call-delta
 * // → tool-call-end
 * // → finish end
 */
export class ModelTextParser {
  readonly #reader: JobReader;

  constructor(options: ModelTextOptions) {
    const { newCallId = () => toolCallId(random), tools, prefix, thinking, separateReasoning } = options;
    this.#reader = new JobReader(
      {
        format: formatOf(options),
        ...(tools && { tools }),
        prefix,
        thinking,
        separateReasoning,
      },
      newCallId,
    );
  }

  /** Takes the next chunk of the text and returns the events that it completes. */
  push(text: string): GenerationEvent[] {
    return this.#reader.push(text);
  }

  /** No more text comes. `cut`: the model did not end it (finish reason "length"); what is open stays incomplete. */
  end(cut: boolean = false): GenerationEvent[] {
    return [...this.#reader.end(cut), { type: "end", end: { kind: "done" } }];
  }
}

function formatOf({ format, template: source }: ModelTextOptions): Format {
  if (format !== undefined) return typeof format === "string" ? requireFormat(format) : format;
  if (source === undefined) throw new TypeError("Say the format, or the chat template, of the model.");
  return findFormat(new ChatTemplate({ source, specialTokens: [] }), templateMetadata(source));
}
