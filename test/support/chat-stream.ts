import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { ChatStreamWriter } from "../../src/wire/apis/chat/write-stream.ts";
import type { ChoicesContext, RequestedAnswer } from "../../src/wire/apis/choices-answer.ts";
import type { Profile } from "../../src/wire/apis/profile.ts";

const plain: RequestedAnswer = {
  stream: true,
  includeUsage: false,
  logprobs: false,
  namedToolChoice: false,
  legacyFunctions: false,
  includeTimings: false,
};

/** A context for a streamed chat answer with nothing asked for but `asked`; its model has a quote in its name. */
export function context(profile: Profile, asked: Partial<RequestedAnswer> = {}): ChoicesContext {
  return {
    profile,
    requested: { ...plain, ...asked },
    id: "chatcmpl-Test",
    created: 1_800_000_000,
    model: 'mo"del',
    settings: {},
    random: () => 0,
  };
}

/** What the writer makes of these batches. */
export function written(batches: readonly (readonly GenerationEvent[])[], answer: ChoicesContext): string {
  const writer = new ChatStreamWriter(answer);
  return batches.map((batch) => writer.write(batch)).join("");
}

/** Data lines, parsed; [DONE] is left out. */
export function chunks(stream: string): Chunk[] {
  const events = stream.split("\n\n").filter(Boolean);
  return events.filter((event) => event.startsWith("data: {")).map((event): Chunk => JSON.parse(event.slice(6)));
}

export interface Chunk {
  readonly id: string;
  readonly created: number;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: Readonly<Record<string, unknown>> & {
      readonly content?: string;
      readonly tool_calls?: readonly { index: number; id?: string; function: { name?: string; arguments: string } }[];
    };
    readonly logprobs: { readonly content: unknown[] } | null;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
  readonly error?: unknown;
}
