/** What a strict client made of a stream. */
export interface StrictMessage {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly (readonly [name: string, args: string])[];
  readonly finish: string | null;
  readonly usage: readonly [prompt: number, completion: number] | null;
  readonly error: string | null;
}

interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly refusal?: string | null;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly type?: string;
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
}

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly { readonly index: number; readonly delta: Delta; readonly finish_reason: string | null }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly error?: { readonly message: string; readonly type: string };
}

/**
 * Reads the bytes of a chat stream without any tolerance, and throws for what OpenAI would not send. Only the
 * first choice is put together.
 */
export function strictMessage(body: string, profile: "lean" | "exact" = "lean"): StrictMessage {
  const events = body.split("\n\n");
  const last = events.splice(-2);
  demand(last[0] === "data: [DONE]" && last[1] === "", "the stream ends with [DONE] and a blank line");
  demand(!body.includes("\r"), "line ends are LF");
  const chunks = events.map((event) => {
    demand(event.startsWith("data: {") && !event.includes("\n"), `an event is one line of data: ${event}`);
    return JSON.parse(event.slice(6)) as Chunk;
  });
  const result = { text: "", reasoning: "", calls: [] as [string, string][], finish: null as string | null };
  let usage: StrictMessage["usage"] = null;
  const roles = new Set<number>();
  const finished = new Set<number>();
  const [first] = chunks;
  for (const [at, chunk] of chunks.entries()) {
    if (chunk.error) {
      demand(at === chunks.length - 1, "an error is the last event before [DONE]");
      demand(
        typeof chunk.error.message === "string" && typeof chunk.error.type === "string",
        "an error has its members",
      );
      return { ...result, usage, error: chunk.error.message };
    }
    demand(chunk.id === first?.id && chunk.id.startsWith("chatcmpl-"), "there is one id");
    demand(chunk.created === first?.created && Number.isInteger(chunk.created), "there is one time");
    demand(chunk.object === "chat.completion.chunk" && chunk.model !== "", "object and model are there");
    if (chunk.usage) {
      demand(at === chunks.length - 1 && chunk.choices.length === 0, "usage is alone, and the last");
      usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens];
      continue;
    }
    demand(chunk.choices.length === 1, "a chunk has one choice");
    for (const { index, delta, finish_reason: finish } of chunk.choices) {
      demand(!finished.has(index), "nothing follows the finish");
      demand(roles.has(index) !== (delta.role === "assistant"), "the role is in the first delta, and only there");
      roles.add(index);
      const members = Object.keys(delta).length;
      if (finish !== null) demand(members === 0, "the finish is alone");
      else demand(members === 1 || (profile === "exact" && delta.role !== undefined), "a delta has one member");
      if (finish !== null) finished.add(index);
      if (index === 0) take(delta, finish, result);
    }
  }
  demand(roles.size === finished.size && roles.size > 0, "every choice that began has finished");
  return { ...result, usage, error: null };
}

function take(
  delta: Delta,
  finish: string | null,
  result: { text: string; reasoning: string; calls: [string, string][]; finish: string | null },
): void {
  if (delta.role === undefined) {
    demand(delta.content !== "" && delta.reasoning_content !== "" && delta.refusal !== "", "no delta is empty");
  }
  result.text += delta.content ?? "";
  result.reasoning += delta.reasoning_content ?? "";
  result.finish = finish ?? result.finish;
  if (!delta.tool_calls) return;
  demand(delta.tool_calls.length === 1, "a delta has one call");
  for (const call of delta.tool_calls) {
    const known = result.calls[call.index];
    if (known) {
      demand(call.index === result.calls.length - 1, "calls do not interleave");
      demand(call.id === undefined && call.function.name === undefined, "a continuation has arguments alone");
      known[1] += call.function.arguments;
    } else {
      demand(call.index === result.calls.length, "indices count up from 0");
      demand(typeof call.id === "string" && call.id !== "" && call.type === "function", "a header has id and type");
      demand(call.function.arguments === "", "a header has empty arguments");
      result.calls.push([call.function.name ?? "", ""]);
    }
  }
}

function demand(condition: boolean, rule: string): void {
  if (!condition) throw new Error(`The wire is broken: ${rule}`);
}
