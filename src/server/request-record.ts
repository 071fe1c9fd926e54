import type { FinishReason, GenerationEnd, GenerationEvent, Usage } from "../generation/event.ts";
import type { LogFields } from "./log.ts";

/** "refused": the client's own fault, a status from 400 on; "failed": ours or the source's, from 500 on. */
export type Outcome = "finished" | "refused" | "failed" | "cancelled";

/** What happened to one request: collected while it runs, logged in one line at its end. */
export class RequestRecord {
  /** The name of the client's key, where it has one; never the key. */
  keyName: string | undefined;
  model: string | undefined;
  stream: boolean | undefined;
  status: number | undefined;
  /** Milliseconds until the answer's head was sent. */
  headMs: number | undefined;
  /** The reader was too slow, and was given up. */
  cut = false;
  toolCalls = 0;
  /** Characters of text, reasoning, refusals and arguments. */
  characters = 0;
  usage: Usage | undefined;
  end: GenerationEnd | undefined;
  /** Why the request was refused, when that happened before an engine was asked. */
  refusal: string | undefined;
  /** The cause of a failure, for the log alone. */
  cause: unknown;
  readonly finishes: FinishReason[] = [];
  readonly receivedAt: number = performance.now();

  see(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      switch (event.type) {
        case "text-delta":
        case "reasoning-delta":
        case "refusal-delta":
          this.characters += event.text.length;
          break;
        case "tool-call-delta":
          this.characters += event.arguments.length;
          break;
        case "tool-call-start":
          this.toolCalls++;
          break;
        case "finish":
          this.finishes.push(event.reason);
          break;
        case "usage":
          this.usage = event.usage;
          break;
        case "end":
          this.end = event.end;
      }
    }
  }

  /** How the request ended, in one word. */
  outcome(clientGone: boolean): Outcome {
    if (clientGone) return "cancelled";
    if (this.end && "failure" in this.end) return this.end.failure.status < 500 ? "refused" : "failed";
    const status = this.status ?? 500;
    if (status < 400) return "finished";
    return status < 500 ? "refused" : "failed";
  }

  fields(): LogFields {
    const failure = this.end && "failure" in this.end ? this.end.failure : undefined;
    const cause = this.cause ?? failure?.cause;
    const fields: Record<string, unknown> = {};
    if (this.keyName !== undefined) fields["key"] = this.keyName;
    if (this.model !== undefined) fields["model"] = this.model;
    if (this.stream !== undefined) fields["stream"] = this.stream;
    if (this.status !== undefined) fields["status"] = this.status;
    fields["ms"] = Math.round(performance.now() - this.receivedAt);
    if (this.headMs !== undefined) fields["headMs"] = this.headMs;
    if (this.usage) {
      fields["promptTokens"] = this.usage.promptTokens;
      fields["completionTokens"] = this.usage.completionTokens;
    }
    if (this.finishes.length > 0) fields["finish"] = [...new Set(this.finishes)].join(",");
    if (this.cut) fields["cut"] = "the reader was too slow";
    if (this.toolCalls > 0) fields["toolCalls"] = this.toolCalls;
    if (failure) {
      fields["end"] = this.end?.kind;
      fields["error"] = failure.message;
    } else if (this.refusal !== undefined) fields["error"] = this.refusal;
    if (cause !== undefined) fields["cause"] = cause instanceof Error ? (cause.stack ?? cause.message) : cause;
    return fields;
  }
}
