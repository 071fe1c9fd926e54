import { invalidRequest } from "../../core/failure.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { isObject, nonEmpty, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import {
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
  withoutUndefined,
} from "../adapt/server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { errorEvent, EventStreamDecoder, eventStreamType, type StreamEvents } from "./event-stream.ts";
import { bedrockSource } from "./platforms.ts";
import { blockList } from "./read-shapes.ts";
import { MessageReader } from "./read.ts";

/*
 * Bedrock's Converse and ConverseStream for Anthropic's models: Messages requests are rewritten, and answers are read back as messages. Sources:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html,
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.
 */

export const converseSource: SourcePort = {
  ...bedrockSource,
  path: (model, stream) => `/model/${encodeURIComponent(model)}/${stream ? "converse-stream" : "converse"}`,
  profile: { toolNames: "short", imageUrls: false, imageTypes: ["image/png", "image/jpeg", "image/gif", "image/webp"] },
  streams: { contentType: eventStreamType, decoder: () => new EventStreamDecoder(new ConverseEvents()) },
  rewrite: converseBody,
  reader: (options) => new ConverseReader(options),
};

/** Members of Converse itself, which a configuration may add. Any other member is the model's. */
const ownMembers = new Set<string>(["guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier"]);

/** Rewrites a Messages request. Throws `FailureError` 400 for content that Converse does not take. */
function converseBody(body: RequestBody, profile: ServerProfile, note: NoteAdaptation): RequestBody {
  const { anthropic_version: _, max_tokens: maxTokens, temperature, top_p: topP, stop_sequences: stop, ...more } = body;
  const { system, messages, tools, tool_choice: choice, cache_control: mark, output_config: output, ...rest } = more;
  const writer = new RequestWriter(profile, note);
  const written = writer.messages(messages);
  const last = written.at(-1)?.content;
  if (last && last.length > 0 && !isCachePoint(last.at(-1))) last.push(...writer.cachePoints(mark));
  const instructions = writer.blocks(system, "system");
  const [specs, modelTools] = writer.tools(tools);
  const { format, effort, ...otherOutput } = isObject(output) ? output : {};
  const schema = isObject(format) ? { jsonSchema: { schema: JSON.stringify(format["schema"]) } } : undefined;
  const textFormat = schema && { type: "json_schema", structure: schema };
  const members = (areOwn: boolean): RequestBody =>
    Object.fromEntries(Object.entries(rest).filter(([name]) => ownMembers.has(name) === areOwn));
  const fields = {
    ...members(false),
    tools: modelTools,
    tool_choice: modelTools && specs.length === 0 ? choice : undefined,
    output_config: unlessEmpty(otherOutput),
  };
  return withoutUndefined({
    ...members(true),
    inferenceConfig: withoutUndefined({ maxTokens, temperature, topP, stopSequences: stop }),
    outputConfig: unlessEmpty({ effort, textFormat }),
    additionalModelRequestFields: unlessEmpty(fields),
    additionalModelResponseFieldPaths: Array.isArray(stop) && stop.length > 0 ? ["/stop_sequence"] : undefined,
    toolConfig: writer.toolConfig(specs, choice),
    system: instructions.length > 0 ? instructions : undefined,
    messages: written,
  });
}

function unlessEmpty(members: RequestBody): RequestBody | undefined {
  const present = withoutUndefined(members);
  return Object.keys(present).length > 0 ? present : undefined;
}

function isCachePoint(block: RequestBody | undefined): boolean {
  return block !== undefined && "cachePoint" in block;
}

/** Writes the parts of one request. */
class RequestWriter {
  /** The names of the tools that were called. */
  readonly #called = new Set<string>();
  readonly #note: NoteAdaptation;
  /** The names of documents, which must differ. */
  readonly #documents = new Set<string>();

  readonly #hasCache: boolean;

  constructor({ cacheMarks }: ServerProfile, note: NoteAdaptation) {
    this.#note = note;
    this.#hasCache = cacheMarks !== false;
  }

  cachePoints(mark: unknown): RequestBody[] {
    if (!isObject(mark) || !this.#hasCache) return [];
    return [{ cachePoint: withoutUndefined({ type: "default", ttl: mark["ttl"] }) }];
  }

  /** Returns the client's tools, and those that the model itself defines. */
  tools(tools: unknown): readonly [specs: RequestBody[], ofModel: RequestBody[] | undefined] {
    const all = blockList(tools).filter(isObject);
    const specs = all.flatMap((tool, at) => {
      const { type = "custom", name, description, input_schema: json, strict, cache_control: mark, ...others } = tool;
      if (type !== "custom") return [];
      for (const other of Object.keys(others)) this.#note("refused-member", `tools[${at}].${other}`);
      const spec = withoutUndefined({ name, description: nonEmpty(description), inputSchema: { json }, strict });
      return [{ toolSpec: spec }, ...this.cachePoints(mark)];
    });
    const ofModel = all.filter(({ type = "custom" }) => type !== "custom");
    return [specs, ofModel.length > 0 ? ofModel : undefined];
  }

  /** Converse cannot forbid calls, and demands tools where there are earlier calls. */
  toolConfig(specs: readonly RequestBody[], choice: unknown): RequestBody | undefined {
    const { type, name, disable_parallel_tool_use: isSingle } = isObject(choice) ? choice : {};
    if (isSingle === true) this.#note("parallel-calls", "tool_choice");
    if (type === "none") this.#note("tool-choice", "tool_choice");
    const isForbidden = type === "none" || specs.length === 0;
    if (isForbidden && this.#called.size === 0) return undefined;
    if (specs.length === 0) this.#note("tool-choice", "tools");
    const inputSchema = { json: { type: "object" } };
    const tools =
      specs.length > 0 ? specs : [...this.#called].map((called) => ({ toolSpec: { name: called, inputSchema } }));
    const chosen =
      type === "tool" ? { tool: { name } } : type === "auto" || type === "any" ? { [type]: {} } : undefined;
    return withoutUndefined({ tools, toolChoice: chosen });
  }

  /** Consecutive messages of one role are one, and empty ones none. */
  messages(messages: unknown): { readonly role: unknown; readonly content: RequestBody[] }[] {
    const written: { role: unknown; content: RequestBody[] }[] = [];
    for (const [at, message] of blockList(messages).entries()) {
      const { role, content } = isObject(message) ? message : {};
      const last = written.at(-1);
      const blocks = this.blocks(content, `messages[${at}].content`, last?.role === role ? last?.content : []);
      if (blocks.length > 0 && blocks !== last?.content) written.push({ role, content: blocks });
    }
    return written;
  }

  /** Appends blocks to `written`. */
  blocks(content: unknown, place: string, written: RequestBody[] = []): RequestBody[] {
    for (const [at, block] of blockList(content).entries()) {
      if (!isObject(block)) continue;
      written.push(...this.#block(block, `${place}[${at}]`));
      if (written.length > 0 && !isCachePoint(written.at(-1)))
        written.push(...this.cachePoints(block["cache_control"]));
    }
    return written;
  }

  #block(block: JsonObject, place: string): RequestBody[] {
    const { type, text, source, id, name, input } = block;
    switch (type) {
      case "text":
        // Converse refuses blank texts.
        return scalarText(text).trim() === "" ? [] : [{ text }];
      case "image":
        return [{ image: media(source, place) }];
      case "document":
        return [{ document: { ...media(source, place), ...this.#documentMembers(block, place) } }];
      case "thinking":
        return [{ reasoningContent: { reasoningText: { text: block["thinking"], signature: block["signature"] } } }];
      case "redacted_thinking":
        return [{ reasoningContent: { redactedContent: block["data"] } }];
      case "tool_use":
        this.#called.add(scalarText(name));
        return [{ toolUse: { toolUseId: id, name, input } }];
      case "tool_result": {
        const all = this.blocks(block["content"], `${place}.content`);
        const content = all.filter((one) => !isCachePoint(one));
        const status = block["is_error"] === true ? "error" : undefined;
        const toolResult = withoutUndefined({ toolUseId: block["tool_use_id"], content, status });
        // A result has no marks inside.
        return [{ toolResult }, ...(block["cache_control"] ? [] : all.filter(isCachePoint).slice(-1))];
      }
    }
    // What the model's own server did in earlier turns.
    if (!/_tool_(?:use|result)$/.test(scalarText(type))) throw notTaken(place, `blocks of type "${scalarText(type)}"`);
    this.#note("refused-member", place);
    return [];
  }

  /** Other characters in a name are refused. */
  #documentMembers({ title, context, citations }: JsonObject, place: string): RequestBody {
    if (isObject(citations) && citations["enabled"] === true) this.#note("refused-member", `${place}.citations`);
    const words = scalarText(title).slice(0, 180);
    const base = words.replace(/[^a-zA-Z0-9()[\]-]+/g, " ").trim() || "document";
    let name = base;
    for (let at = this.#documents.size + 1; this.#documents.has(name); at++) name = `${base} ${at}`;
    this.#documents.add(name);
    return withoutUndefined({ name, context: nonEmpty(context) });
  }
}

function media(source: unknown, place: string): RequestBody {
  const { type, media_type: mediaType, data } = isObject(source) ? source : {};
  if (type === "text") return { format: "txt", source: { text: data } };
  if (type === "base64") return { format: scalarText(mediaType).split("/").at(-1), source: { bytes: data } };
  throw notTaken(`${place}.source`, `sources of type "${scalarText(type)}"`);
}

function notTaken(place: string, what: string): Error {
  const message = `${place}: Bedrock's Converse takes no ${what}. Remove it, or use InvokeModel (api: bedrock).`;
  return invalidRequest(message, place, "unsupported_value");
}

/** Reads whole answers of Converse. Those of streams have become the Messages API's events. */
class ConverseReader extends MessageReader {
  override readBody(body: unknown): GenerationEvent[] {
    const message = isObject(body) && isObject(body["output"]) ? body["output"]["message"] : undefined;
    if (!isObject(body) || !isObject(message)) return super.readBody(body);
    const content = blockList(message["content"]).filter(isObject).flatMap(messageBlock);
    return super.readBody({ role: "assistant", content, ...endOf(body), usage: usageOf(body["usage"]) });
  }
}

function messageBlock(block: JsonObject): JsonObject[] {
  const { text, toolUse, reasoningContent: reasoning, citationsContent: cited } = block;
  if (text !== undefined) return [{ type: "text", text }];
  if (isObject(cited)) return blockList(cited["content"]).filter(isObject).flatMap(messageBlock);
  if (isObject(toolUse)) {
    const { toolUseId: id, name, input } = toolUse;
    return [{ type: "tool_use", id, name, input }];
  }
  if (!isObject(reasoning)) return [];
  const { reasoningText: signed, redactedContent: data } = reasoning;
  if (!isObject(signed)) return [{ type: "redacted_thinking", data }];
  return [{ type: "thinking", thinking: signed["text"], signature: signed["signature"] ?? "" }];
}

function endOf({ stopReason, additionalModelResponseFields: fields }: JsonObject): JsonObject {
  const isFiltered = stopReason === "guardrail_intervened" || stopReason === "content_filtered";
  const sequence = isObject(fields) ? nonEmpty(fields["stop_sequence"]) : undefined;
  return { stop_reason: isFiltered ? "refusal" : stopReason, stop_sequence: sequence ?? null };
}

function usageOf(usage: unknown): JsonObject | undefined {
  if (!isObject(usage)) return undefined;
  const written = blockList(usage["cacheDetails"]).filter(isObject);
  const byTime = written.map(({ ttl, inputTokens }) => [`ephemeral_${scalarText(ttl)}_input_tokens`, inputTokens]);
  return withoutUndefined({
    input_tokens: usage["inputTokens"],
    output_tokens: usage["outputTokens"],
    cache_read_input_tokens: usage["cacheReadInputTokens"],
    cache_creation_input_tokens: usage["cacheWriteInputTokens"],
    cache_creation: unlessEmpty(Object.fromEntries(byTime)),
  });
}

const emptyText = { type: "text", text: "" };
const emptyThinking = { type: "thinking", thinking: "", signature: "" };

/** Writes the events of ConverseStream as the Messages API's. Texts and reasoning have no start there, and the usage comes last. */
class ConverseEvents implements StreamEvents {
  /** The indices of the blocks. */
  readonly #started = new Set<unknown>();
  /** The end of the message, which waits for the usage. */
  #end: JsonObject | undefined;

  event(type: string, payload: JsonObject | undefined): string {
    if (payload === undefined) return errorEvent("api_error", "The event stream has an event that is not JSON.");
    const { contentBlockIndex: index, start, delta, usage } = payload;
    switch (type) {
      case "messageStart":
        return sse({ type: "message_start", message: { role: "assistant", content: [] } });
      case "contentBlockStart":
        return isObject(start)
          ? messageBlock(start)
              .map((block) => this.#withStart(index, block))
              .join("")
          : "";
      case "contentBlockDelta":
        return isObject(delta) ? this.#delta(index, delta) : "";
      case "contentBlockStop":
        return this.#withStart(index, emptyText) + sse({ type: "content_block_stop", index });
      case "messageStop":
        this.#end = endOf(payload);
        return "";
      case "metadata": {
        const text = this.#end && sse({ type: "message_delta", delta: this.#end, usage: usageOf(usage) });
        this.#end = undefined;
        return text === undefined ? "" : text + sse({ type: "message_stop" });
      }
      default:
        return "";
    }
  }

  end(): string {
    return this.#end ? sse({ type: "message_delta", delta: this.#end }) : "";
  }

  #delta(index: unknown, { text, toolUse, reasoningContent: reasoning }: JsonObject): string {
    if (text !== undefined) return this.#withStart(index, emptyText, { type: "text_delta", text });
    if (isObject(toolUse))
      return this.#withStart(index, undefined, { type: "input_json_delta", partial_json: toolUse["input"] });
    const { text: thinking, signature, redactedContent: data } = isObject(reasoning) ? reasoning : {};
    if (data !== undefined) return this.#withStart(index, { type: "redacted_thinking", data });
    if (signature !== undefined) return this.#withStart(index, emptyThinking, { type: "signature_delta", signature });
    return thinking === undefined ? "" : this.#withStart(index, emptyThinking, { type: "thinking_delta", thinking });
  }

  /** The start of a block that has not started, and a delta. */
  #withStart(index: unknown, block: JsonObject | undefined, delta?: JsonObject): string {
    const isNew = block !== undefined && !this.#started.has(index);
    if (isNew) this.#started.add(index);
    const start = isNew ? sse({ type: "content_block_start", index, content_block: block }) : "";
    return delta ? start + sse({ type: "content_block_delta", index, delta }) : start;
  }
}

function sse(event: JsonObject): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
