import type { GenerationRequest } from "./request.ts";

/*
 * A hook is a user's object that sees requests before they are sent and answers while they stream, and may change or refuse them. It has the
 * same form for clients of all APIs and for all sources.
 */

/** What a hook gets of a request: everything but the client's own JSON. `model`: the name by which clients know the model that answers. */
export type HookRequest = Omit<GenerationRequest, "id" | "owner" | "tier" | "passthrough">;

/** Who asks. */
export interface HookContext {
  /** As in the `x-request-id` header and in the log. */
  readonly requestId: string;
  /** The client's API: `chat`, `completions`, `responses`, `messages`, `ollama`, `gemini`, `embeddings`, `rerank`. */
  readonly api: string;
  /** The name of the client's key; absent: it has none. */
  readonly key?: string;
  /** The client's headers, by their lower-case names, without those that have credentials. */
  readonly headers: Readonly<Record<string, string>>;
}

/** New text of an answer, or a whole tool call, whose `text` is its arguments. */
export interface HookPart {
  readonly type: "text" | "reasoning" | "refusal" | "tool-call";
  /** Begins with what the hook held back before (`rest`). */
  readonly text: string;
  /** Of a tool call: the tool. */
  readonly name?: string;
  /** Of several choices, the one that the part belongs to. */
  readonly choice: number;
  /** No text of this part follows, so none may be held back. */
  readonly isEnd: boolean;
}

/** What is sent in place of a part: a text, or one with a `rest` that is held back until more text comes. */
export type HookChange = string | { readonly text: string; readonly rest?: string };

/**
 * The default export of a hook's module. What a function throws as `RequestError` refuses the request, or ends the answer, with its status and
 * message; any other exception is a 500 that says nothing of it. The functions must not keep state: consecutive calls may run in different
 * threads.
 */
export interface Hook {
  /** Sees a request before it is sent to its model. Returns the request to send in its place, or nothing. */
  readonly request?: (
    request: HookRequest,
    context: HookContext,
  ) => HookRequest | null | undefined | void | Promise<HookRequest | null | undefined | void>;
  /** Sees the answer while it streams. Returns what to send in place of the part, or nothing. */
  readonly answer?: (
    part: HookPart,
    context: HookContext,
  ) => HookChange | null | undefined | void | Promise<HookChange | null | undefined | void>;
}

/**
 * Returns the hook, typed.
 *
 * @example
 * import { defineHook, RequestError } from "truewire";
 *
 * const hook = defineHook({
 *   request({ tools = [] }, { key }) {
 *     if (key === "guest" && tools.length > 0) throw new RequestError("Guests may not use tools.", { status: 403 });
 *   },
 *   answer: ({ text }) => text.replaceAll("Project Aurora", "the project"),
 * });
 * console.log(Object.keys(hook).join(", "));
 * // → request, answer
 */
export function defineHook(hook: Hook): Hook {
  return hook;
}

/** A hook as the server calls it. */
export interface HookRunner {
  readonly sees: ReadonlySet<keyof Hook>;
  /**
   * Resolves with what a function of the hook returns, as JSON has it; null: nothing, or not in time where that lets requests pass. Rejects
   * with `FailureError`, and with the signal's reason when it aborts. `owner`: where calls wait, owners take turns.
   */
  run(
    member: keyof Hook,
    input: HookRequest | HookPart,
    context: HookContext,
    owner: string,
    signal: AbortSignal,
  ): Promise<unknown>;
  close(): Promise<void>;
}
