import { withMark } from "../request/cache-mark.ts";
import {
  assistantContent,
  type AssistantPart,
  type Content,
  type Message,
  type ReasoningPart,
  type Tool,
  type ToolCallPart,
  type ToolMessage,
} from "../../core/message.ts";
import type { SealedValues } from "../../core/request.ts";
import { invalidRequest } from "../../core/failure.ts";
import { given, type JsonObject } from "../../core/json.ts";
import { qualifiedName } from "../../core/custom-tool.ts";
import type * as z from "zod";
import { BodyCounter } from "../body-counter.ts";
import { invalidType, missingParameter, unsupportedEnumValue, valuePhrase } from "../request/refusals.ts";
import { anyObject } from "../request/shapes.ts";
import type { SealedReasoning, TurnSeal } from "../turn-seal.ts";
import { calledClientTool, clientToolResult } from "./client-tools.ts";
import { hostedCallPart, isHostedItem, readContent } from "./hosted-items.ts";
import { toolSearch } from "./items.ts";
import { KnownCalls, noCalls, type OpenCall, type ReadCalls } from "./known-calls.ts";
import { LeftOut, nothingLeftOut, type ReadLeftOut } from "./left-out.ts";
import { readDeclaration } from "./read-tools.ts";
import {
  approvalResponse,
  assistantMessage,
  clientItem,
  inputItems,
  inputItemTypes,
  parsed,
} from "./request-schema.ts";
import { hostedItemTypes } from "./schema.ts";
import { GrowingList, GrowingMap } from "./state/history.ts";
import type { Recalled } from "./state/recall.ts";
import { readInputContent, readSpoken } from "./input-parts.ts";

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
  readonly seal: TurnSeal;
  /** Receives what the sealed values contain (see `Passthrough`). */
  readonly opened: { values?: SealedValues };
  /** The name of the list, in errors; default `input`. */
  readonly name?: string;
  /** Results are accepted whose calls are not known. */
  readonly anyResult?: boolean;
}

/** An item that changes settings of the request, and where it is. */
export interface ConfigurationUpdate {
  readonly item: z.output<typeof inputItems.configuration_update>;
  readonly path: string;
}

/** The maximum number of messages of the user between a call and its result that are moved after the result. */
const maxSteers = 32;

/** The output of an async tool's call until its real one comes. */
const noOutputYet = "The output is not available yet.";

/** The result of a call that the client has not approved. */
const deniedCall = "The user has denied this call.";

/** What was read from a history. Another reader continues it. */
export interface ReadHistory {
  readonly messages: GrowingList<Message>;
  /** The message of the model at the end, which may continue. */
  readonly turn: { readonly path: string; readonly parts: GrowingList<AssistantPart> } | null;
  readonly calls: ReadCalls;
  readonly leftOut: ReadLeftOut;
  readonly found: GrowingList<Tool>;
  readonly updates: GrowingList<ConfigurationUpdate>;
  readonly encrypted: BodyCounter;
  readonly sealed: GrowingMap<SealedReasoning>;
}

const nothingRead: ReadHistory = {
  messages: new GrowingList(),
  turn: null,
  calls: noCalls,
  leftOut: nothingLeftOut,
  found: new GrowingList(),
  updates: new GrowingList(),
  encrypted: new BodyCounter(),
  sealed: new GrowingMap(),
};

export class InputReader {
  readonly #options: InputOptions;
  /** The ids of the calls that have a result. */
  readonly #withResult: ReadonlySet<unknown>;
  /** An item is read that was accepted before, in an earlier request. */
  #isAgain = false;
  readonly #before: ReadHistory;
  /** The messages after those of `#before`. */
  readonly #messages: Message[] = [];
  /** The message of the model that is being read. */
  #turn: {
    readonly path: string;
    readonly before?: GrowingList<AssistantPart>;
    readonly parts: AssistantPart[];
  } | null;
  readonly #calls: KnownCalls;
  readonly #encrypted: BodyCounter;
  readonly #sealed = new Map<string, SealedReasoning>();
  readonly #referred = new Set<string>();
  /** The hosted call that was read last, if its item does not show its result, and where it is. The next item may have it. */
  #unread: { readonly part: ToolCallPart; readonly item: JsonObject; readonly path: string } | undefined;
  readonly #leftOut: LeftOut;

  constructor(options: InputOptions, withResult: ReadonlySet<unknown>, before = nothingRead) {
    this.#options = options;
    this.#withResult = withResult;
    this.#before = before;
    this.#turn = before.turn && { path: before.turn.path, before: before.turn.parts, parts: [] };
    this.#calls = new KnownCalls(before.calls);
    this.#leftOut = new LeftOut(before.leftOut);
    this.#encrypted = before.encrypted.copy();
  }

  /** Returns what was read, for readers that continue. */
  soFar(): ReadHistory {
    this.#skipUnread();
    const { messages, found, updates } = this.#before;
    for (const id of this.#withResult) if (typeof id === "string") this.#calls.note(id, { hasResult: true });
    const parts = this.#turn?.before ?? new GrowingList<AssistantPart>();
    return {
      messages: messages.with(this.#messages),
      turn: this.#turn && { path: this.#turn.path, parts: parts.with(this.#turn.parts) },
      calls: this.#calls.soFar(),
      leftOut: this.#leftOut.soFar(),
      found: found.with(this.#options.found),
      updates: updates.with(this.#options.updates),
      encrypted: this.#encrypted,
      sealed: this.#before.sealed.with(this.#sealed),
    };
  }

  done(): Message[] {
    this.#skipUnread();
    this.#endTurn();
    this.#answerAsyncCalls();
    const { messages, found, updates, sealed } = this.#before;
    if (sealed.size + this.#sealed.size > 0)
      this.#options.opened.values = { get: (value) => this.#sealed.get(value) ?? sealed.get(value) };
    this.#options.warnings.push(...this.#leftOut.warnings());
    const ownTools = this.#options.found.splice(0);
    for (const tool of found.toArray(0, ownTools)) this.#options.found.push(tool);
    const ownUpdates = this.#options.updates.splice(0);
    for (const update of updates.toArray(0, ownUpdates)) this.#options.updates.push(update);
    return messages.toArray(0, this.#messages);
  }

  get calls(): Pick<KnownCalls, "firstOpen" | "isListed"> {
    return this.#calls;
  }

  /** Reads what a user, a system or a tool says. */
  #content(content: string | readonly JsonObject[], path: string): Content {
    // The request's own time is for its own input: what was read from a history does not depend on the request.
    return readInputContent(content, path, this.#isStrict, this.#isAgain ? undefined : this.#options.cacheTtl);
  }

  get #isStrict(): boolean {
    return this.#options.strict && !this.#isAgain;
  }

  /** `again`: the item was accepted before, and is not judged strictly. */
  read(value: unknown, path: string, again = false): void {
    const was = this.#isAgain;
    this.#isAgain ||= again;
    this.#item(parsed(anyObject(), value, path), path);
    this.#isAgain = was;
  }

  #item(item: JsonObject, path: string): void {
    const type = typeOf(item, path);
    if (type !== "reasoning") this.#skipUnread();
    switch (type) {
      case "message":
        return this.#message(item, path);
      case "reasoning":
        return this.#reasoning(item, path);
      case "function_call":
      case "custom_tool_call":
        this.#calls.opened(type, item);
        return this.#call(type, item, path);
      case "function_call_output":
      case "custom_tool_call_output": {
        const { output, call_id: id, ...own } = parsed(inputItems[type], item, path);
        const call = typeof id === "string" ? this.#answeredCall(id, path) : this.#unaskedCall(own, path);
        return this.#result(call, this.#content(output, `${path}.output`), path, item);
      }
      case "tool_search_call": {
        // Without an id, OpenAI itself has searched.
        if ((item["call_id"] ?? null) === null) break;
        const { call_id: id, arguments: searched } = parsed(inputItems[type], item, path);
        this.#calls.called(id, toolSearch);
        const text = JSON.stringify(searched ?? {});
        return this.#spoken(path, { type: "tool-call", id, name: toolSearch, arguments: text });
      }
      case "tool_search_output": {
        if ((item["call_id"] ?? null) === null) break;
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
      case "compaction_trigger":
        // The last item of the input: the response is a compaction (request.ts). Any other is followed by that compaction.
        return;
      case "compaction":
        return this.#leftOut.skip(path, "a compaction of another server cannot be opened; it is left out");
    }
    const call = calledClientTool(item);
    if (call) {
      const { call_id, status } = parsed(clientItem, item, path);
      return this.#call("function_call", { call_id, status, ...call }, path);
    }
    const result = clientToolResult(item);
    if (result) {
      const { call_id } = parsed(clientItem, { call_id: result.callId }, path);
      return this.#result(call_id, result.content, path);
    }
    if (isHostedItem(type) || type === "image_generation_call") return this.#hosted(item, path);
    if (type === "mcp_approval_response") return this.#approval(item, path);
    if (hostedItemTypes.some((hosted) => hosted === type))
      return this.#leftOut.skip(path, `an item of type ${type} is left out: the tool is not run here`);
    if (this.#isStrict) throw unsupportedEnumValue(`${path}.type`, type, inputItemTypes);
    this.#leftOut.skip(path, `an item of unknown type ${JSON.stringify(type)} is left out`);
  }

  /** A call that has run on the server, with its result. */
  #hosted(item: JsonObject, path: string): void {
    const { type, approval_request_id: approvalId, encrypted_content: encrypted } = item;
    if (type === "mcp_list_tools") {
      this.#calls.listed(item["server_label"]);
      return;
    }
    const part = hostedCallPart(item);
    // The model has not called anything yet while its call waits for the client's approval.
    if (type === "mcp_approval_request") {
      this.#calls.note(part.id, { waiting: part });
      return;
    }
    const { text, callId = part.id } = (typeof encrypted === "string" ? this.#open(encrypted, path) : undefined) ?? {};
    const content = readContent(item, text);
    if (content === undefined) {
      this.#unread = { part, item, path };
      return;
    }
    const isApproved = typeof approvalId === "string" && this.#calls.of(approvalId)?.isApproved === true;
    if (isApproved) return this.#result(approvalId, content, path);
    this.#hostedCall({ ...part, id: callId }, content, path);
  }

  #hostedCall(part: ToolCallPart, content: Content, path: string): void {
    this.#calls.called(part.id, part.name);
    this.#spoken(path, part);
    this.#result(part.id, content, path);
  }

  /** Reads the result of the hosted call before it, which its client has kept in encrypted content. Some clients leave out the ids of items. */
  #keptResult({ id, callId = id, text }: NonNullable<SealedReasoning["result"]>): void {
    const unread = this.#unread;
    if (unread === undefined || (unread.part.id !== "" && unread.part.id !== id)) return;
    this.#unread = undefined;
    this.#hostedCall({ ...unread.part, id: callId }, text, unread.path);
  }

  #skipUnread(): void {
    if (this.#unread === undefined) return;
    const { item, path } = this.#unread;
    this.#unread = undefined;
    this.#leftOut.skip(path, `an item of type ${String(item["type"])} without its results is left out`);
  }

  /** An approved call runs before the model continues. */
  #approval(item: JsonObject, path: string): void {
    const { approval_request_id: id, approve, reason } = parsed(approvalResponse, item, path);
    const call = this.#calls.of(id)?.waiting;
    if (!call) {
      const message = `No approval request found for the approval response with approval_request_id ${id}.`;
      throw invalidRequest(message, `${path}.approval_request_id`);
    }
    this.#calls.called(id, call.name);
    this.#calls.note(id, { isApproved: approve });
    this.#spoken(path, call);
    if (!approve) this.#result(id, `${deniedCall}${reason ? ` ${reason}` : ""}`, path);
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

  #reasoning(item: JsonObject, path: string): void {
    const { id, content, summary, encrypted_content: encrypted } = parsed(inputItems.reasoning, item, path);
    const opened = typeof encrypted === "string" ? this.#open(encrypted, path) : undefined;
    if (opened?.result) return this.#keptResult(opened.result);
    this.#skipUnread();
    const isForeign = typeof encrypted === "string" && !opened;
    const { forwards } = this.#options;
    const keeps = isForeign && forwards;
    const own = keeps
      ? ({ kind: "encrypted", value: encrypted } as const)
      : forwards && typeof encrypted !== "string" && typeof id === "string" && id !== ""
        ? ({ kind: "stored", value: id } as const)
        : undefined;
    const { callId, state = own } = opened ?? {};
    if (state?.kind === "call") {
      if (callId !== undefined) this.#calls.note(callId, { state });
      return;
    }
    const part: ReasoningPart = {
      type: "reasoning",
      text: opened?.text ?? (content ?? []).map(({ text }) => text).join("\n\n"),
      ...(summary && summary.length > 0 && { summary: summary.map(({ text }) => text) }),
      ...given({ id, state, summary: opened?.summary }),
    };
    if (isForeign && !keeps)
      this.#leftOut.skip(path, "reasoning that another server has encrypted cannot be read; it is left out");
    if (part.text !== "" || (part.summary ?? part.state) !== undefined) this.#spoken(path, part);
  }

  /** Returns what a value contains that this server has sealed. */
  #open(value: string, path: string): SealedReasoning | undefined {
    const opened = this.#options.seal.open(value, this.#encrypted);
    if (!opened) return undefined;
    this.#sealed.set(value, opened);
    if (Object.keys(opened).length === 0)
      this.#leftOut.skip(path, "encrypted content that is damaged, or was made for another key, is left out");
    return opened;
  }

  #call(type: OpenCall["type"], item: JsonObject, path: string): void {
    const { status, call_id: cutId, [type === "function_call" ? "arguments" : "input"]: text } = item;
    const isCut = status === "incomplete" && typeof text === "string" && typeof cutId === "string";
    // No client has run the call, and servers refuse a call without a result.
    if (isCut && !this.#withResult.has(cutId) && this.#calls.of(cutId)?.hasResult !== true) {
      this.#calls.note(cutId, { isCut: true });
      return this.#leftOut.skip(path, "a call that was cut, and has no result, is left out");
    }
    const call = parsed(inputItems[type], item, path);
    const { call_id: id, name: own, namespace } = call;
    const name = namespace === undefined || namespace === null ? own : qualifiedName(namespace, own);
    this.#calls.called(id, name);
    const { encrypted_content: encrypted } = item;
    // A stored response has the state of a call in the call itself.
    const stored = typeof encrypted === "string" ? this.#open(encrypted, path)?.state : undefined;
    const state = stored?.kind === "call" ? stored : this.#calls.of(id)?.state;
    const part: ToolCallPart = {
      type: "tool-call",
      id,
      name,
      arguments: "input" in call ? call.input : call.arguments,
      ...("input" in call && { kind: "custom" }),
      ...given({ namespace, state }),
    };
    this.#spoken(path, part);
    if (item["async"] === true) this.#calls.openedAsync(id);
  }

  /** Answers the open calls of async tools, since templates and other APIs take no call without an output after it. */
  #answerAsyncCalls(): void {
    for (const toolCallId of this.#calls.takeOpenAsync())
      this.#messages.push({
        role: "tool",
        content: noOutputYet,
        toolCallId,
        ...given({ name: this.#calls.of(toolCallId)?.name }),
      });
  }

  /** Returns the call that an output belongs to: a made one for a further output of an async tool's call. */
  #answeredCall(id: string, path: string): string {
    const call = this.#calls.of(id);
    if (call?.isAnswered === true) return this.#unaskedCall({ name: call.name }, path);
    this.#calls.answeredAsync(id);
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
    const id = this.#calls.unaskedId();
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

  /** `marked`: the item, if it may have a mark of the prompt cache. */
  #result(toolCallId: string, content: Content, path: string, marked: object = {}): void {
    this.#calls.closed(toolCallId);
    const { strict, warnings, recalled, anyResult = false } = this.#options;
    const name = this.#calls.of(toolCallId)?.name;
    if (name === undefined && !anyResult) {
      const message = `No tool call found for function call output with call_id ${toolCallId}.`;
      // A request that continues a response has all of its calls. Open Responses wants a code; OpenAI sends none.
      if (strict || recalled.previous || recalled.conversation)
        throw invalidRequest(message, "input", strict ? null : "tool_call_not_found");
      warnings.push(`${path}: ${message}`);
    }
    this.#endTurn();
    const result: ToolMessage = { role: "tool", content, toolCallId, ...given({ name }), path };
    this.#messages.splice(this.#placeOfResult(), 0, withMark(result, marked));
  }

  /** A steer may come between a call and its result. Chat templates and other servers take the result first. */
  #placeOfResult(): number {
    const { length } = this.#messages;
    let place = length;
    while (length - place < maxSteers && this.#messages[place - 1]?.role === "user") place--;
    const { messages } = this.#before;
    const { role, content } = this.#messages[place - 1] ?? messages.toArray(messages.length - 1)[0] ?? {};
    const isCall =
      Array.isArray(content) && content.some(({ type }: { readonly type: string }) => type === "tool-call");
    return role === "tool" || (role === "assistant" && isCall) ? place : length;
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
    if (!found)
      return this.#leftOut.skip(path, "nothing is stored that this item_reference could mean; it is left out");
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
    const { path, before, parts: own } = this.#turn;
    const parts = before?.toArray(0, own) ?? own;
    this.#turn = null;
    this.#messages.push({ role: "assistant", content: assistantContent(parts), path });
  }
}

/** The type of an item. Clients leave it out of messages and references. */
function typeOf(item: JsonObject, path: string): string {
  const type = item["type"] ?? undefined;
  if (type === undefined) return (item["role"] ?? null) === null ? "item_reference" : "message";
  if (typeof type !== "string") throw invalidType(`${path}.type`, "a string", valuePhrase(type));
  return type;
}
