import {
  assistantContent,
  type AssistantPart,
  type Content,
  type ContentPart,
  type Message,
  type ReasoningPart,
  type Tool,
  type ToolCallPart,
} from "../../core/message.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { qualifiedName } from "../../core/custom-tool.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import type { z } from "zod";
import { BodyCounter } from "../body-counter.ts";
import { invalidType, missingParameter, unsupportedEnumValue, valuePhrase } from "../request/refusals.ts";
import { anyObject } from "../request/shapes.ts";
import { decryptReasoning } from "./encrypted-content.ts";
import { toolSearch } from "./items.ts";
import { readDeclaration } from "./read-tools.ts";
import {
  assistantMessage,
  assistantContentParts,
  cacheBreakpoint,
  given,
  inputItems,
  inputItemTypes,
  inputParts,
  parsed,
  typed,
} from "./request-schema.ts";
import { cacheTtls, hostedItemTypes, minutesOfTtl } from "./schema.ts";
import { type PlacedItem, withoutCompactions } from "./state/input-items.ts";
import type { Recalled } from "./state/recall.ts";

export interface InputOptions {
  /** What OpenAI refuses is refused; otherwise it is left out with a warning. */
  readonly strict: boolean;
  /** The request is forwarded to another server, which may decrypt reasoning that this server cannot. */
  readonly forwards: boolean;
  readonly warnings: string[];
  /** How long a breakpoint without a time of its own is cached: the request's `prompt_cache_options.ttl`. */
  readonly cacheTtl?: string | undefined;
  /** Receives the tools that the conversation brings. */
  readonly found: Tool[];
  /** Receives the changes of settings that the conversation brings, in order. */
  readonly updates: ConfigurationUpdate[];
  readonly recalled: Recalled;
}

/** An item that changes settings of the request, and where it is. */
export interface ConfigurationUpdate {
  readonly item: z.output<typeof inputItems.configuration_update>;
  readonly path: string;
}

/**
 * Reads the `input` of a request as a conversation, which begins with the history that the request continues. What the model said, reasoned
 * and called without anything in between is one message. Throws `FailureError`.
 */
export function* readInput(input: string | readonly unknown[], options: InputOptions): Steps<Message[]> {
  const { history } = options.recalled;
  const own: readonly PlacedItem[] =
    typeof input === "string"
      ? [{ item: { role: "user", content: input }, path: "input" }]
      : input.map((item, index) => ({ item, path: `input[${index}]` }));
  const earlier = history.map((item) => ({ item, path: "previous_response_id", again: true }) as const);
  yield;
  const items = yield* withoutCompactions([...earlier, ...own]);
  const reader = new InputReader(options, yield* callsWithResult(items));
  const pace = new StepCounter();
  for (const { item, path, again } of items) {
    reader.read(item, path, again);
    if (pace.endsStep(partCount(item))) yield;
  }
  return reader.done();
}

function partCount(item: unknown): number {
  const content = isObject(item) ? (item["content"] ?? item["output"]) : undefined;
  return 1 + (Array.isArray(content) ? content.length : 0);
}

function* callsWithResult(items: readonly PlacedItem[]): Steps<ReadonlySet<unknown>> {
  const ids = new Set<unknown>();
  const pace = new StepCounter();
  for (const { item } of items) {
    if (isObject(item) && "output" in item) ids.add(item["call_id"]);
    if (pace.endsStep()) yield;
  }
  return ids;
}

/** The output of an async tool's call while there is none. */
const noOutputYet = "The output is not available yet.";

class InputReader {
  readonly #options: InputOptions;
  /** The ids of the calls that have a result. */
  readonly #withResult: ReadonlySet<unknown>;
  /** False while an item is read that was accepted before. */
  #isStrict: boolean;
  readonly #messages: Message[] = [];
  /** The message of the model that is being read. */
  #turn: { readonly path: string; readonly parts: AssistantPart[] } | null = null;
  /** The names of the called tools by the ids of the calls. */
  readonly #names = new Map<string, string>();
  #unaskedCalls = 0;
  /** The ids of the calls of async tools: those that no output has followed yet, and those that one has. */
  readonly #openAsync = new Set<string>();
  readonly #answeredAsync = new Set<string>();
  readonly #encrypted = new BodyCounter();
  readonly #referred = new Set<string>();
  /** What was left out, by reason. */
  readonly #skipped = new Map<string, { readonly path: string; count: number }>();

  constructor(options: InputOptions, withResult: ReadonlySet<unknown>) {
    this.#options = options;
    this.#withResult = withResult;
    this.#isStrict = options.strict;
  }

  done(): Message[] {
    this.#endTurn();
    this.#answerAsyncCalls();
    for (const [reason, { path, count }] of this.#skipped) {
      this.#options.warnings.push(`${path}${count > 1 ? ` and ${count - 1} more` : ""}: ${reason}`);
    }
    return this.#messages;
  }

  /** `again`: the item was accepted before, and is not judged strictly. */
  read(value: unknown, path: string, again = false): void {
    const strict = this.#isStrict;
    if (again) this.#isStrict = false;
    this.#item(parsed(anyObject(), value, path), path);
    this.#isStrict = strict;
  }

  #item(item: JsonObject, path: string): void {
    const type = typeOf(item, path);
    switch (type) {
      case "message":
        return this.#message(item, path);
      case "reasoning":
        return this.#reasoning(item, path);
      case "function_call":
      case "custom_tool_call":
        return this.#call(type, item, path);
      case "function_call_output":
      case "custom_tool_call_output": {
        const { output, call_id: id, ...own } = parsed(inputItems[type], item, path);
        const call = typeof id === "string" ? this.#callOf(id, path) : this.#unaskedCall(own, path);
        return this.#result(call, this.#content(output, `${path}.output`), path);
      }
      case "tool_search_call": {
        if (!hasCallId(item)) break;
        const { call_id: id, arguments: searched } = parsed(inputItems[type], item, path);
        this.#names.set(id, toolSearch);
        const text = JSON.stringify(searched ?? {});
        return this.#spoken(path, { type: "tool-call", id, name: toolSearch, arguments: text });
      }
      case "tool_search_output": {
        if (!hasCallId(item)) break;
        const { call_id: id, tools } = parsed(inputItems[type], item, path);
        // The model is shown what was found, and may call it from now on.
        const found = this.#newTools(tools, path).map(({ name, description }) => ({ name, description }));
        return this.#result(id, JSON.stringify({ tools: found }), path);
      }
      case "additional_tools":
        this.#newTools(parsed(inputItems[type], item, path).tools, path);
        return;
      case "configuration_update":
        this.#options.updates.push({ item: parsed(inputItems[type], item, path), path });
        return;
      case "item_reference":
        return this.#reference(item, path);
      case "compaction":
        return this.#skip(path, "a compaction of another server cannot be opened; it is left out");
    }
    if (hostedItemTypes.some((hosted) => hosted === type))
      return this.#skip(path, `an item of type ${type} is left out: the tool is not run here`);
    if (this.#isStrict) throw unsupportedEnumValue(`${path}.type`, type, inputItemTypes);
    this.#skip(path, `an item of unknown type ${JSON.stringify(type)} is left out`);
  }

  #message(item: JsonObject, path: string): void {
    const strict = this.#isStrict;
    if (item["role"] === "assistant") {
      const { content, phase } = parsed(assistantMessage, item, path);
      this.#spoken(path, ...readSpoken(content, `${path}.content`, phase ?? undefined, strict));
      return;
    }
    const { role, content } = parsed(inputItems.message, item, path);
    if (role === "assistant") return;
    this.#endTurn();
    this.#answerAsyncCalls();
    this.#messages.push({ role, content: this.#content(content, `${path}.content`), path });
  }

  /** Reads what a user, a system or a tool says. */
  #content(content: string | readonly JsonObject[], path: string): Content {
    if (typeof content === "string") return content;
    return content.map((value, index) => {
      const place = `${path}[${index}]`;
      const part = readInputPart(value, place, this.#isStrict);
      if ((value["prompt_cache_breakpoint"] ?? null) === null || part.type === "refusal") return part;
      const at = `${place}.prompt_cache_breakpoint`;
      const ttl = parsed(cacheBreakpoint, value["prompt_cache_breakpoint"], at)?.ttl ?? this.#options.cacheTtl;
      const minutes = minutesOfTtl(ttl ?? cacheTtls[0]);
      if (minutes === undefined && this.#isStrict) throw unsupportedEnumValue(`${at}.ttl`, String(ttl), cacheTtls);
      return { ...part, cacheMinutes: minutes ?? 30 };
    });
  }

  #reasoning(item: JsonObject, path: string): void {
    const { id, content, summary, encrypted_content: encrypted } = parsed(inputItems.reasoning, item, path);
    const decrypted = typeof encrypted === "string" ? decryptReasoning(encrypted, this.#encrypted) : null;
    const isForeign = typeof encrypted === "string" && decrypted === null;
    const keeps = isForeign && this.#options.forwards;
    const part: ReasoningPart = {
      type: "reasoning",
      text: (content ?? []).map(({ text }) => text).join("\n\n"),
      ...(summary && summary.length > 0 && { summary: summary.map(({ text }) => text) }),
      ...given({ id, encrypted: keeps ? encrypted : undefined }),
      ...decrypted,
    };
    if (isForeign && !keeps)
      this.#skip(path, "reasoning that another server has encrypted cannot be read; it is left out");
    if (part.text !== "" || (part.summary ?? part.encrypted ?? part.signature) !== undefined) this.#spoken(path, part);
  }

  #call(type: "function_call" | "custom_tool_call", item: JsonObject, path: string): void {
    const { status, call_id: cutId, [type === "function_call" ? "arguments" : "input"]: text } = item;
    const isCut = status === "incomplete" && typeof text === "string" && typeof cutId === "string";
    // No client has run the call, and servers refuse a call without a result.
    if (isCut && !this.#withResult.has(cutId))
      return this.#skip(path, "a call that was cut, and has no result, is left out");
    const call = parsed(inputItems[type], item, path);
    const { call_id: id, name: own, namespace } = call;
    const name = namespace === undefined || namespace === null ? own : qualifiedName(namespace, own);
    this.#names.set(id, name);
    const part: ToolCallPart = {
      type: "tool-call",
      id,
      name,
      arguments: "input" in call ? call.input : call.arguments,
      ...("input" in call && { kind: "custom" }),
      ...given({ namespace }),
    };
    this.#spoken(path, part);
    if (item["async"] === true) this.#openAsync.add(id);
  }

  /** Answers the open calls of async tools, since templates and other APIs take no call without an output after it. */
  #answerAsyncCalls(): void {
    for (const toolCallId of this.#openAsync) {
      this.#answeredAsync.add(toolCallId);
      const name = this.#names.get(toolCallId);
      this.#messages.push({ role: "tool", content: noOutputYet, toolCallId, ...given({ name }) });
    }
    this.#openAsync.clear();
  }

  /** Returns the call that an output belongs to: a made one for a further output of an async tool's call. */
  #callOf(id: string, path: string): string {
    if (this.#answeredAsync.has(id)) return this.#unaskedCall({ name: this.#names.get(id) }, path);
    if (this.#openAsync.delete(id)) this.#answeredAsync.add(id);
    return id;
  }

  /**
   * Adds a call for an output that no call has asked for, and returns its id. Templates and other APIs take the output of a tool only after
   * its call.
   */
  #unaskedCall(
    own: { readonly name?: string | null | undefined; readonly namespace?: string | null | undefined },
    path: string,
  ): string {
    const { name, namespace } = given(own);
    if (name === undefined) throw missingParameter(`${path}.call_id`);
    const id = `call_unasked_${++this.#unaskedCalls}`;
    this.#call("function_call", { call_id: id, name, namespace, arguments: "{}" }, path);
    return id;
  }

  #newTools(list: readonly JsonObject[], path: string): Tool[] {
    const tools = list.flatMap(
      (tool, index) => readDeclaration(tool, `${path}.tools[${index}]`, this.#isStrict)?.tools ?? [],
    );
    this.#options.found.push(...tools);
    return tools;
  }

  #result(toolCallId: string, content: Content, path: string): void {
    const { strict, warnings, recalled } = this.#options;
    const name = this.#names.get(toolCallId);
    if (name === undefined) {
      const message = `No tool call found for function call output with call_id ${toolCallId}.`;
      // A request that continues a response has all of its calls. Open Responses wants a code; OpenAI sends none.
      if (strict || recalled.previous) throw invalidRequest(message, "input", strict ? null : "tool_call_not_found");
      warnings.push(`${path}: ${message}`);
    }
    this.#endTurn();
    this.#messages.push({ role: "tool", content, toolCallId, ...given({ name }), path });
  }

  #reference(item: JsonObject, path: string): void {
    const { id } = parsed(inputItems.item_reference, item, path);
    const found = this.#options.recalled.references.get(id);
    // A reference of a few bytes may mean a long item, so it is taken once. OpenAI's words.
    if (found && this.#referred.has(id)) {
      const message = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
      throw invalidRequest(message, "input");
    }
    this.#referred.add(id);
    if (!found) return this.#skip(path, "nothing is stored that this item_reference could mean; it is left out");
    this.read(found, path, true);
  }

  /** Adds parts to the message of the model. */
  #spoken(path: string, ...parts: readonly AssistantPart[]): void {
    if (this.#turn === null) this.#answerAsyncCalls();
    this.#turn ??= { path, parts: [] };
    this.#turn.parts.push(...parts);
  }

  #endTurn(): void {
    if (this.#turn === null) return;
    const { path, parts } = this.#turn;
    this.#turn = null;
    this.#messages.push({ role: "assistant", content: assistantContent(parts), path });
  }

  #skip(path: string, reason: string): void {
    const known = this.#skipped.get(reason);
    if (known) known.count++;
    else this.#skipped.set(reason, { path, count: 1 });
  }
}

/** Whether a search for tools is the client's. Without an id, OpenAI itself has searched. */
function hasCallId(item: JsonObject): boolean {
  return (item["call_id"] ?? null) !== null;
}

/** The type of an item. Clients leave it out of messages and references. */
function typeOf(item: JsonObject, path: string): string {
  const type = item["type"] ?? undefined;
  if (type === undefined) return (item["role"] ?? null) === null ? "item_reference" : "message";
  if (typeof type !== "string") throw invalidType(`${path}.type`, "a string", valuePhrase(type));
  return type;
}

/** Types of parts that programs mix up, chat's among them; accepted unless the request is judged strictly. */
const otherNames: Readonly<Record<string, string>> = {
  text: "input_text",
  output_text: "input_text",
  image_url: "input_image",
  file: "input_file",
};

function readInputPart(part: JsonObject, path: string, strict: boolean): ContentPart {
  const { type } = parsed(typed, part, path);
  switch (strict ? type : (otherNames[type] ?? type)) {
    case "input_text":
      return { type: "text", text: parsed(inputParts.input_text, part, path).text };
    case "input_image":
      return readImage(part, path);
    case "input_file": {
      const { filename: name, file_data: data, file_url: url, file_id: id } = parsed(inputParts.input_file, part, path);
      return { type: "file", ...given({ name, data, url, id }) };
    }
    case "input_audio":
      return { type: "audio", ...parsed(inputParts.input_audio, part, path).input_audio };
    case "refusal":
      if (!strict) return { type: "refusal", refusal: parsed(assistantContentParts.refusal, part, path).refusal };
  }
  throw unsupportedEnumValue(`${path}.type`, type, Object.keys(inputParts));
}

function readImage(part: JsonObject, path: string): ContentPart {
  const { image_url: image, file_id: id, detail } = parsed(inputParts.input_image, part, path);
  if (image !== undefined && image !== null)
    return { type: "image", url: typeof image === "string" ? image : image.url, ...given({ detail }) };
  if (id !== undefined && id !== null) return { type: "file", id };
  if (image === null) throw invalidType(`${path}.image_url`, "a string", "null");
  throw missingParameter(`${path}.image_url`);
}

/** Reads what the model said. */
function readSpoken(
  content: string | readonly JsonObject[],
  path: string,
  phase: string | undefined,
  strict: boolean,
): AssistantPart[] {
  if (typeof content === "string") return [{ type: "text", text: content, ...given({ phase }) }];
  return content.map((part, index) => {
    const place = `${path}[${index}]`;
    const { type } = parsed(typed, part, place);
    if (type === "refusal") return { type, refusal: parsed(assistantContentParts.refusal, part, place).refusal };
    if (type === "output_text" || (!strict && (type === "input_text" || type === "text")))
      return { type: "text", text: parsed(inputParts.input_text, part, place).text, ...given({ phase }) };
    throw unsupportedEnumValue(`${place}.type`, type, Object.keys(assistantContentParts));
  });
}
