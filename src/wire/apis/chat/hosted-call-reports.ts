import type { HostedCallDeltaEvent, HostedCallStartEvent, HostedResultEvent } from "../../core/events.ts";
import { isFailed, resultContent, resultText } from "../../core/hosted-result.ts";
import type { HostedCallIdentity } from "../../core/hosted-tool.ts";
import type { JsonValue } from "../json-text.ts";

/**
 * The member `hosted_call` of chunks, for clients that ask for it (`include_hosted_calls`): chat has no items for calls that run on the server.
 */
export class HostedCallReports {
  readonly #open = new Map<string, { readonly call: HostedCallIdentity; readonly chunks: string[] }>();

  begin(call: HostedCallStartEvent): string {
    this.#open.set(call.id, { call, chunks: [] });
    return "";
  }

  input({ id, arguments: text }: HostedCallDeltaEvent): string {
    this.#open.get(id)?.chunks.push(text);
    return "";
  }

  /** A call whose arguments are complete. */
  running(id: string): JsonValue | undefined {
    const { call, chunks = [] } = this.#open.get(id) ?? {};
    return call && { ...identity(call), status: "running", arguments: chunks.join("") };
  }

  /** `results`: of a search. `output`: what the model reads. */
  ended(event: HostedResultEvent): JsonValue {
    this.#open.delete(event.id);
    const { result } = event;
    return {
      ...identity(event),
      status: isFailed(result) ? "failed" : "completed",
      ...(result.kind === "search" && { results: result.results.map(({ title, url }) => ({ title, url })) }),
      output: resultText(resultContent(result)),
    };
  }
}

function identity({ id, kind, tool, name }: HostedCallIdentity): { readonly [member: string]: JsonValue } {
  return { id, kind, tool, name };
}
