import { accumulate, type Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { HostedTool } from "../../core/hosted-tool.ts";
import type { ReadOptions, StreamWriter } from "../port.ts";
import { serverToolUseId } from "./ids.ts";

/** A query is as long as a question, not as a document. In characters. */
const maxQueryLength = 1000;
const unavailable = "Web search is not available on this server.";

/**
 * Whether all that a request offers its model is a web search that the server does not run, as the WebSearch of Claude Code does, in a
 * request of its own. A model that is asked to search without the tool invents what it finds.
 */
export function onlySearchesTheWeb({ tools, hostedTools = [] }: GenerationRequest, runs: ReadOptions["runs"]): boolean {
  const isSearch = (tool: HostedTool): boolean => tool.kind === "web_search" && runs?.(tool) !== true;
  return tools === undefined && hostedTools.length > 0 && hostedTools.every(isSearch);
}

/**
 * Returns the content of the answer: the search, its error, and a sentence. `random` is uniform in [0, 1). Source:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool#errors.
 */
export function unavailableSearch({ prompt }: GenerationRequest, random: () => number): readonly GenerationEvent[] {
  const id = serverToolUseId(random);
  const user = prompt.kind === "chat" ? prompt.messages.findLast(({ role }) => role === "user")?.content : undefined;
  const text =
    typeof user === "string" ? user : (user ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  const query = text.slice(0, maxQueryLength);
  const error = { type: "web_search_tool_result_error", error_code: "unavailable" };
  return [
    { type: "server_tool_use", id, name: "web_search", input: { query } },
    { type: "web_search_tool_result", tool_use_id: id, content: error },
  ]
    .map((value): GenerationEvent => ({ type: "extra", choice: 0, place: "item", dialect: "messages", value }))
    .concat({ type: "text-delta", choice: 0, text: unavailable });
}

/** Adds content to the beginning of a streamed answer. */
export class PrefacedWriter implements StreamWriter {
  readonly #writer: StreamWriter;
  #content: readonly GenerationEvent[];

  constructor(writer: StreamWriter, content: readonly GenerationEvent[]) {
    this.#writer = writer;
    this.#content = content;
  }

  write(events: readonly GenerationEvent[]): string {
    const content = this.#content;
    this.#content = [];
    if (content.length === 0) return this.#writer.write(events);
    const at = events[0]?.type === "start" ? 1 : 0;
    return this.#writer.write([...events.slice(0, at), ...content, ...events.slice(at)]);
  }

  open(): string {
    return this.#writer.open();
  }

  keepAlive(): string {
    return this.#writer.keepAlive();
  }
}

/** Returns a whole answer with content in place of its own, which has none. */
export function withContent(generation: Generation, content: readonly GenerationEvent[]): Generation {
  const finish: GenerationEvent = { type: "finish", choice: 0, reason: "stop" };
  const { choices } = accumulate([{ type: "start", choice: 0 }, ...content, finish]);
  return { ...generation, choices };
}
