import type { CacheMiss } from "../../../wire/core/cache-miss.ts";
import { cancellable } from "../../../wire/core/cancellable.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import type { HookContext, HookPart, HookRequest } from "../../../wire/core/hook.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import type { Generate } from "../fallbacks.ts";
import type { ServedModel } from "../model-directory.ts";
import type { Reply } from "../reply.ts";
import type { Service } from "../service.ts";
import { HookedAnswer, WrongHookResult } from "./hooked-answer.ts";

/** Headers that a hook does not get: they have credentials. */
const credentials = /^(?:(?:proxy-)?authorization|cookie|x-goog-api-key|x-api-key|api-key|x-amz-security-token)$/;

/** A request as a hook lets it pass, and the model that it names then, by the name that clients use. */
interface SeenRequest {
  readonly request: GenerationRequest;
  readonly model: string;
}

/**
 * Generates under a hook: it sees each request before it is sent, those of later rounds of hosted tools too, and the events of the answer.
 * `start` returns what generates: of the model that the hook has chosen, which throws `FailureError` for one that the client may not use.
 */
export function withHook(
  model: ServedModel,
  start: (name: string) => Generate,
  reply: Reply,
  service: Service,
): Generate {
  return (request, observer) =>
    cancellable(async function* (signal): AsyncGenerator<readonly GenerationEvent[]> {
      let source: AsyncIterator<readonly GenerationEvent[]> | undefined;
      const leave = (): void => void source?.return?.()?.catch(() => {});
      signal.addEventListener("abort", leave, { once: true });
      try {
        const seen = await seenByHook(request, model, reply, service, signal, (miss) => observer?.cacheMissed?.(miss));
        source = start(seen.model)(seen.request, observer)[Symbol.asyncIterator]();
        const context = contextOf(reply);
        const answer = new HookedAnswer((part) => ask("answer", part, context, reply, service, signal));
        const isSeen = service.hook?.sees.has("answer") === true;
        for (;;) {
          const step = await source.next();
          if (step.done === true) return;
          const events = isSeen ? await answer.read(step.value) : step.value;
          if (events.length > 0) yield events;
        }
      } catch (error) {
        leave();
        if (signal.aborted) return;
        const { failure } = failureOf(error, reply);
        yield [{ type: "end", end: { kind: failure.status < 500 ? "rejected" : "engine-error", failure } }];
      }
    });
}

/**
 * Resolves with a request as the hook lets it pass. One that it has changed is not forwarded as the client sent it. `report` is called if the
 * hook has changed the beginning of a conversation, which no prompt cache has then. Rejects with `FailureError`.
 */
export async function seenByHook(
  request: GenerationRequest,
  { info }: ServedModel,
  reply: Reply,
  service: Service,
  signal: AbortSignal = reply.exchange.departure.signal,
  report?: (miss: CacheMiss) => void,
): Promise<SeenRequest> {
  if (service.hook?.sees.has("request") !== true) return { request, model: info.id };
  const { id: _, owner: __, tier: ___, passthrough: ____, clientKey: _____, ...shown } = request;
  const given = { ...shown, model: info.id };
  try {
    const returned = await ask("request", given, contextOf(reply), reply, service, signal);
    const changed = returned === null ? given : readRequest(returned, given);
    const { model } = changed;
    const sent = returned === null ? request : { ...request, ...changed, model: request.model, passthrough: undefined };
    const miss = service.hook.prefixes.missOf(request, sent);
    if (miss) {
      report?.(miss);
      const { where, at } = miss;
      service.log.warn(
        { req: reply.requestId, where, at },
        "the hook has changed what it let pass in an earlier request of the conversation: its prompt is not in the source's cache",
      );
    }
    return { request: sent, model };
  } catch (error) {
    throw failureOf(error, reply);
  }
}

/** The same for texts without a conversation: those of a request for embeddings or a ranking. */
export async function textsSeenByHook(
  id: string,
  texts: readonly (string | readonly number[])[],
  model: ServedModel,
  reply: Reply,
  service: Service,
): Promise<readonly (string | readonly number[])[]> {
  const prompt = { kind: "text", prompts: texts } as const;
  const request = {
    id,
    model: model.info.id,
    prompt,
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: false,
    extra: {},
  };
  const { request: seen } = await seenByHook(request, model, reply, service);
  return seen.prompt.kind === "text" ? seen.prompt.prompts : texts;
}

function ask(
  member: "request" | "answer",
  input: HookRequest | HookPart,
  context: HookContext,
  { caller: { client } }: Reply,
  { hook }: Service,
  signal: AbortSignal,
): Promise<unknown> {
  return hook ? hook.run(member, input, context, client?.owner ?? "", signal) : Promise.resolve(null);
}

function contextOf({ requestId, exchange, record: { asked } }: Reply): HookContext {
  const headers = exchange.headers().map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    requestId,
    api: asked.api?.name ?? "",
    ...(asked.keyName !== undefined && { key: asked.keyName }),
    headers: Object.fromEntries(headers.filter(([name]) => !credentials.test(name))),
  };
}

/** The members that a hook may change. */
const members = [
  "model",
  "prompt",
  "tools",
  "toolChoice",
  "sampling",
  "limits",
  "output",
  "reasoning",
  "extra",
] as const;

/** The request that a hook has returned, as JSON has it. Throws `WrongHookResult`. */
function readRequest(returned: unknown, given: HookRequest): HookRequest {
  const wrong = (what: string): WrongHookResult => new WrongHookResult(`request returned ${what}`);
  if (!isObject(returned)) throw wrong(`${typeof returned}; expected the request, or nothing`);
  const changed: Record<string, unknown> = { ...given };
  for (const member of members) {
    delete changed[member];
    if (returned[member] !== undefined) changed[member] = returned[member];
  }
  const { model, prompt, tools = [], sampling, limits, extra } = changed;
  if (typeof model !== "string" || model === "") throw wrong("a request without a model");
  if (!isObject(prompt) || prompt["kind"] !== given.prompt.kind)
    throw wrong(`a prompt of another kind; expected { kind: "${given.prompt.kind}", … }`);
  const { messages, prompts, template } = prompt;
  if (
    given.prompt.kind === "text"
      ? !isTexts(prompts, given.prompt.prompts.length)
      : !isMessages(messages) || !isObject(template)
  )
    throw wrong("messages, or prompts, in another form; see HookRequest");
  if (!Array.isArray(tools) || !tools.every((tool) => isObject(tool) && typeof tool["name"] === "string"))
    throw wrong("tools in another form; expected a list of { name, … }");
  if (![sampling, limits, extra].every(isObject)) throw wrong("no sampling, limits or extra; expected mappings");
  return changed as unknown as HookRequest;
}

function isTexts(prompts: unknown, count: number): boolean {
  return (
    Array.isArray(prompts) &&
    prompts.length === count &&
    prompts.every((one) => typeof one === "string" || Array.isArray(one))
  );
}

const textual: Readonly<Record<string, string>> = {
  text: "text",
  reasoning: "text",
  refusal: "refusal",
  image: "url",
  audio: "data",
  "tool-call": "arguments",
};

function isMessages(messages: unknown): boolean {
  return Array.isArray(messages) && messages.length > 0 && messages.every(isMessage);
}

function isMessage(message: unknown): boolean {
  if (!isObject(message)) return false;
  const { role, content, toolCallId } = message;
  if (!["system", "developer", "user", "assistant", "tool"].includes(String(role))) return false;
  if (role === "tool" && typeof toolCallId !== "string") return false;
  if (typeof content === "string" || (content === null && role === "assistant")) return true;
  const isPart = (part: unknown): boolean => {
    if (!isObject(part) || typeof part["type"] !== "string") return false;
    const member = textual[part["type"]];
    return part["type"] === "file" || (member !== undefined && typeof part[member] === "string");
  };
  return Array.isArray(content) && content.every(isPart);
}

/** What a client gets when a hook fails: what the hook says in a refusal, and nothing of anything else. */
function failureOf(error: unknown, { requestId }: Pick<Reply, "requestId">): FailureError {
  if (error instanceof FailureError) return error;
  return new FailureError({
    kind: "internal",
    status: 500,
    message: `The hook of this server failed. The server's log says why, under the request id ${requestId}.`,
    code: "hook_failed",
    headers: { "x-should-retry": "false" },
    cause:
      error instanceof WrongHookResult
        ? `the hook's ${error.message}`
        : error instanceof Error && error.cause !== undefined
          ? error.cause
          : error,
  });
}
