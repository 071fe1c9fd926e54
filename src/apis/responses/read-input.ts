import { contentOf } from "../../core/assistant-parts.ts";
import { invalidRequest } from "../../core/failure.ts";
import { BodyCounter } from "../body-counter.ts";
import { isObject } from "../../core/json.ts";
import type { AssistantPart, Content, Message, ReasoningPart, Tool, ToolCallPart } from "../../core/message.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { qualifiedName } from "../../core/qualified-name.ts";
import { unsupportedEnumValue } from "../request/refusals.ts";
import { RawMembers } from "./raw-members.ts";
import { withoutCompactions } from "./state/compaction.ts";
import type { PlacedItem } from "./state/compaction.ts";
import type { Recalled } from "./state/recall.ts";
import { readContent, readSpoken } from "./read-parts.ts";
import { toolSearch } from "./call-kind.ts";
import { readDeclaration } from "./read-tools.ts";
import { openThought } from "./sealed-thought.ts";

export interface InputOptions {
  /** What OpenAI refuses is refused; else it is left out with a warning. */
  readonly strict: boolean;
  /** A server behind may open thoughts that others have sealed. */
  readonly forwards: boolean;
  readonly warnings: string[];
  /** Gets the tools that the conversation brings. */
  readonly found: Tool[];
  readonly recalled: Recalled;
}

/** `input` of a request, as the conversation that it tells, after what it goes on from. Throws `FailureError`. */
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
  const pace = new Pace();
  for (const { item, path, again } of items) {
    if (again) reader.readAgain(item, path);
    else reader.read(new RawMembers(item, path));
    if (pace.isOver(partsIn(item))) yield;
  }
  return reader.done();
}

/** How many small things an item has. */
function partsIn(item: unknown): number {
  const content = isObject(item) ? (item["content"] ?? item["output"]) : undefined;
  return 1 + (Array.isArray(content) ? content.length : 0);
}

function* callsWithResult(items: readonly PlacedItem[]): Steps<ReadonlySet<unknown>> {
  const ids = new Set<unknown>();
  const pace = new Pace();
  for (const { item } of items) {
    if (isObject(item) && "output" in item) ids.add(item["call_id"]);
    if (pace.isOver()) yield;
  }
  return ids;
}

/**
 * Items in their order become messages; what the model said, thought and called without anything between is one turn of its own.
 */
class InputReader {
  readonly #options: InputOptions;
  /** The ids of the calls that have a result. */
  readonly #withResult: ReadonlySet<unknown>;
  /** Not for what was accepted before. */
  #isStrict: boolean;
  readonly #messages: Message[] = [];
  /** The model's turn that is being read. */
  #turn: { readonly path: string; readonly parts: AssistantPart[] } | null = null;
  /** The name of what was called, by the call's id. */
  readonly #names = new Map<string, string>();
  readonly #seals = new BodyCounter();
  readonly #referred = new Set<string>();
  /** What was left out, by reason. */
  readonly #skipped = new Map<string, { readonly path: string; count: number }>();

  constructor(options: InputOptions, withResult: ReadonlySet<unknown>) {
    this.#options = options;
    this.#withResult = withResult;
    this.#isStrict = options.strict;
  }

  /** An item that was accepted before. */
  readAgain(item: unknown, path: string): void {
    this.#isStrict = false;
    this.read(new RawMembers(item, path));
    this.#isStrict = this.#options.strict;
  }

  done(): Message[] {
    this.#endTurn();
    for (const [reason, { path, count }] of this.#skipped) {
      this.#options.warnings.push(`${path}${count > 1 ? ` and ${count - 1} more` : ""}: ${reason}`);
    }
    return this.#messages;
  }

  read(item: RawMembers): void {
    const type = item.optionalString("type") ?? (item.has("role") ? "message" : "item_reference");
    switch (type) {
      case "message":
        return this.#message(item);
      case "reasoning":
        return this.#reasoning(item);
      case "function_call":
        return this.#called(item, "function", item.string("arguments"));
      case "custom_tool_call":
        return this.#called(item, "custom", item.string("input"));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#output(item);
      case "tool_search_call":
      case "tool_search_output":
        // Without an id it is a search that OpenAI made itself.
        if (item.optionalString("call_id") === undefined) break;
        return type === "tool_search_call" ? this.#searched(item) : this.#found(item);
      case "additional_tools":
        this.#brought(item);
        return;
      case "item_reference":
        return this.#reference(item);
      case "compaction":
        return this.#skip(item, "a compaction of another server cannot be opened; it is left out");
    }
    if (hostedItems.has(type)) return this.#skip(item, `an item of type ${type} is left out: the tool is not run here`);
    if (this.#isStrict) throw unsupportedEnumValue(item.at("type"), type, [...knownItems, ...hostedItems]);
    this.#skip(item, `an item of unknown type ${JSON.stringify(type)} is left out`);
  }

  #message(item: RawMembers): void {
    const strict = this.#isStrict;
    const role = item.word("role", ["assistant", "system", "developer", "user"]);
    if (role === "assistant") {
      this.#said(item, ...readSpoken(item, item.optionalString("phase"), strict));
      return;
    }
    this.#endTurn();
    this.#messages.push({ role, content: readContent(item, "content", strict), path: item.path });
  }

  #reasoning(item: RawMembers): void {
    const id = item.optionalString("id");
    const texts = (item.optionalList("content") ?? []).map((part) => part.string("text"));
    const summary = (item.optionalList("summary") ?? []).map((part) => part.string("text"));
    const sealed = item.optionalString("encrypted_content");
    const opened = sealed === undefined ? null : openThought(sealed, this.#seals);
    const keepsSeal = sealed !== undefined && opened === null && this.#options.forwards;
    const part: ReasoningPart = {
      type: "reasoning",
      text: texts.join("\n\n"),
      ...(summary.length > 0 && { summary }),
      ...(id !== undefined && { id }),
      ...(keepsSeal && { encrypted: sealed }),
      ...opened,
    };
    if (sealed !== undefined && opened === null && !keepsSeal) {
      this.#skip(item, "a thought that another server has sealed cannot be opened; it is left out");
    }
    if (part.text !== "" || (part.summary ?? part.encrypted ?? part.signature) !== undefined) this.#said(item, part);
  }

  #called(item: RawMembers, kind: "function" | "custom", text: string): void {
    const id = item.string("call_id");
    // Nobody ran it; servers refuse a call without a result.
    if (item.value["status"] === "incomplete" && !this.#withResult.has(id)) {
      return this.#skip(item, "a call that was cut, and has no result, is left out");
    }
    const namespace = item.optionalString("namespace");
    const own = item.string("name");
    const name = namespace === undefined ? own : qualifiedName(namespace, own);
    this.#names.set(id, name);
    const call: ToolCallPart = {
      type: "tool-call",
      id,
      name,
      arguments: text,
      ...(kind === "custom" && { kind }),
      ...(namespace !== undefined && { namespace }),
    };
    this.#said(item, call);
  }

  #output(item: RawMembers): void {
    this.#answered(item, readContent(item, "output", this.#isStrict));
  }

  /** The model has asked the client to search for tools. */
  #searched(item: RawMembers): void {
    const id = item.string("call_id");
    this.#names.set(id, toolSearch);
    const asked = JSON.stringify(item.optionalObject("arguments")?.value ?? {});
    this.#said(item, { type: "tool-call", id, name: toolSearch, arguments: asked });
  }

  /** What a search has found: the model is told, and may call it from now on. */
  #found(item: RawMembers): void {
    const tools = this.#brought(item).map(({ name, description }) => ({ name, description }));
    this.#answered(item, JSON.stringify({ tools }));
  }

  #brought(item: RawMembers): Tool[] {
    const tools = item.list("tools").flatMap((tool) => readDeclaration(tool, this.#isStrict)?.tools ?? []);
    this.#options.found.push(...tools);
    return tools;
  }

  #answered(item: RawMembers, content: Content): void {
    const { strict, warnings, recalled } = this.#options;
    const toolCallId = item.string("call_id");
    const name = this.#names.get(toolCallId);
    if (name === undefined) {
      const message = `No tool call found for function call output with call_id ${toolCallId}.`;
      // Who goes on from a response has all of its calls there. Open Responses wants a code; OpenAI sends none.
      if (strict || recalled.previous) throw invalidRequest(message, "input", strict ? null : "tool_call_not_found");
      warnings.push(`${item.path}: ${message}`);
    }
    this.#endTurn();
    this.#messages.push({ role: "tool", content, toolCallId, ...(name !== undefined && { name }), path: item.path });
  }

  #reference(item: RawMembers): void {
    const id = item.string("id");
    const found = this.#options.recalled.references.get(id);
    // A few bytes that stand for much may come once. OpenAI's words.
    if (found && this.#referred.has(id)) {
      const message = `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`;
      throw invalidRequest(message, "input");
    }
    this.#referred.add(id);
    if (!found) return this.#skip(item, "nothing is stored that this item_reference could mean; it is left out");
    this.readAgain(found, item.path);
  }

  #said(item: RawMembers, ...parts: readonly AssistantPart[]): void {
    this.#turn ??= { path: item.path, parts: [] };
    this.#turn.parts.push(...parts);
  }

  #endTurn(): void {
    if (this.#turn === null) return;
    const { path, parts } = this.#turn;
    this.#turn = null;
    this.#messages.push({ role: "assistant", content: contentOf(parts), path });
  }

  #skip({ path }: RawMembers, reason: string): void {
    const known = this.#skipped.get(reason);
    if (known) known.count++;
    else this.#skipped.set(reason, { path, count: 1 });
  }
}

const knownItems = [
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "tool_search_call",
  "tool_search_output",
  "additional_tools",
  "item_reference",
  "compaction",
] as const;

/** Items of tools that OpenAI runs, and of what it makes of them. Source: the specification's InputItem. */
const hostedItems: ReadonlySet<string> = new Set([
  "file_search_call",
  "computer_call",
  "computer_call_output",
  "web_search_call",
  "tool_search_call",
  "tool_search_output",
  "image_generation_call",
  "code_interpreter_call",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "compaction_trigger",
  "program",
  "program_output",
]);
