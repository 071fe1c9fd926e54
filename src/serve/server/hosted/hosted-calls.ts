import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import { hostedFailure } from "../../../wire/core/hosted-result.ts";
import { modelName } from "../../../wire/core/hosted-tool.ts";
import type {
  FunctionFilter,
  HostedFailure,
  HostedFunction,
  HostedResult,
  HostedTool,
  HostedToolExecutor,
  HostedToolExecutors,
  HostedToolKind,
} from "../../../wire/core/hosted-tool.ts";
import { objectIn } from "../../../wire/core/json.ts";
import type { Message, Tool } from "../../../wire/core/message.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";

/** A hosted tool of a request, and what runs it. */
export interface PlannedTool {
  readonly tool: HostedTool;
  readonly executor: HostedToolExecutor;
}

/** The limits of one answer, besides those of each executor. */
export interface HostedLimits {
  /** The number of times that the model continues after results. */
  readonly maxRounds: number;
  readonly maxCalls: number;
  /** No further call runs after this time, in milliseconds. */
  readonly maxMs: number;
  /** Whether the answer has reached its limit of cost: no further call runs, and the model does not continue. */
  readonly isSpent?: () => boolean;
}

/** As many rounds as Anthropic runs before it pauses an answer. */
const usualLimits: HostedLimits = { maxRounds: 10, maxCalls: 100, maxMs: 10 * 60_000 };

/** A function that the model is offered. */
export interface OfferedFunction extends PlannedTool {
  readonly function: HostedFunction;
  readonly needsApproval: boolean;
}

/** The functions of one tool, or why it has none. */
export interface OfferedTool extends PlannedTool {
  readonly functions: readonly HostedFunction[] | HostedFailure;
}

/**
 * Returns the hosted tools that a request asks for and what runs each; `undefined` if it asks for none that any server could run. A tool
 * without an executor fails as unavailable, so that no answer of the model looks like its result. Throws `FailureError` for a tool that the
 * configuration does not allow.
 */
export function planHostedTools(
  { hostedTools, prompt, n = 1 }: GenerationRequest,
  executors: HostedToolExecutors | undefined,
): { readonly tools: readonly PlannedTool[]; readonly limits: HostedLimits } | undefined {
  if (hostedTools === undefined || prompt.kind !== "chat" || n !== 1) return undefined;
  const tools = hostedTools.flatMap((tool): PlannedTool[] => {
    const executor = executors?.find(tool) ?? unavailable(tool);
    return executor ? [{ tool, executor }] : [];
  });
  return tools.length === 0 ? undefined : { tools, limits: usualLimits };
}

/** How the model calls the tools that have one function, where no executor says so. */
const usualFunctions: Readonly<Partial<Record<HostedToolKind, HostedFunction>>> = {
  web_search: usualFunction("web_search", "Searches the web.", "query"),
  web_fetch: usualFunction("web_fetch", "Fetches the document at a URL.", "url"),
  code_interpreter: usualFunction("code_interpreter", "Runs Python code.", "code"),
  file_search: usualFunction("file_search", "Searches the files of the user.", "query"),
  image_generation: usualFunction("image_generation", "Generates an image.", "prompt"),
};

function usualFunction(name: string, description: string, parameter: string): HostedFunction {
  const parameters = { type: "object", properties: { [parameter]: { type: "string" } }, required: [parameter] };
  return { name, description: `${description} Not available on this server: each call fails.`, parameters };
}

function unavailable({ kind, name }: HostedTool): HostedToolExecutor | undefined {
  const usual = usualFunctions[kind];
  if (!usual && kind !== "mcp") return undefined;
  const failure = hostedFailure(
    "unavailable",
    kind === "mcp" ? `No MCP server '${name}' is configured on this server.` : undefined,
  );
  return {
    name: "",
    kind,
    timeoutMs: 1000,
    maxCalls: 1000,
    functions: () => Promise.resolve(usual ? [usual] : failure),
    run: () => Promise.resolve(failure),
  };
}

/** Asks each tool for its functions, concurrently. */
export function offerTools(planned: readonly PlannedTool[], signal: AbortSignal): Promise<readonly OfferedTool[]> {
  return Promise.all(
    planned.map(async ({ tool, executor }) => {
      const functions = await within(executor.timeoutMs, signal, (own) => executor.functions(tool, own));
      return { tool, executor, functions };
    }),
  );
}

/** Returns the functions by the names by which the model knows them. A function of the client with the same name has precedence. */
export function functionsByName(
  offered: readonly OfferedTool[],
  own: readonly Tool[] = [],
): ReadonlyMap<string, OfferedFunction> {
  const taken = new Set(own.map(({ name }) => name));
  const byName = new Map<string, OfferedFunction>();
  for (const { tool, executor, functions } of offered) {
    if ("kind" in functions) continue;
    for (const one of functions) {
      const name = modelName({ kind: tool.kind, tool: tool.name, name: one.name });
      if (taken.has(name)) continue;
      taken.add(name);
      byName.set(name, { tool, executor, function: one, needsApproval: needsApproval(tool, one) });
    }
  }
  return byName;
}

/** Whether the client must approve a call. What is in neither list needs approval. */
function needsApproval({ options }: HostedTool, one: HostedFunction): boolean {
  const approval = options.server?.approval;
  if (approval === undefined || approval === true) return approval === true;
  if (approval.always && matches(approval.always, one)) return true;
  return !(approval.never && matches(approval.never, one));
}

function matches({ names, readOnly }: FunctionFilter, { name, readOnly: isReadOnly = false }: HostedFunction): boolean {
  return (names === undefined || names.includes(name)) && (readOnly === undefined || readOnly === isReadOnly);
}

/** One call of the model. */
export interface RequestedCall {
  readonly id: string;
  readonly offered: OfferedFunction;
  /** JSON, which may be malformed. */
  readonly arguments: string;
  /** It is beyond `max_tool_calls`: the client does not see it. */
  readonly isIgnored?: boolean;
  /** The client has approved it, in this request. */
  readonly isApproved?: boolean;
}

/** Runs the calls of one answer, within its limits. */
export class HostedCalls {
  readonly #limits: HostedLimits;
  readonly #signal: AbortSignal;
  readonly #maxToolCalls: number;
  readonly #owner: string;
  readonly #began = performance.now();
  #calls = 0;
  readonly #usesOf = new Map<HostedTool, number>();

  constructor(limits: HostedLimits, signal: AbortSignal, request: GenerationRequest) {
    this.#limits = limits;
    this.#signal = signal;
    this.#maxToolCalls = request.limits.maxToolCalls ?? Infinity;
    this.#owner = request.owner ?? request.id;
  }

  /** The time is over. */
  get isOver(): boolean {
    return performance.now() - this.#began > this.#limits.maxMs;
  }

  /** How many calls the client's limit allows further. */
  get left(): number {
    return Math.max(0, this.#maxToolCalls - this.#calls);
  }

  /** Resolves with a result in any case. `refuses`: no further call runs. */
  async run(call: RequestedCall, messages: readonly Message[], refuses: boolean): Promise<HostedResult> {
    const { tool, executor, function: one } = call.offered;
    const uses = (this.#usesOf.get(tool) ?? 0) + 1;
    const isOver = ++this.#calls > Math.min(this.#limits.maxCalls, this.#maxToolCalls);
    if (refuses || isOver || uses > Math.min(tool.options.maxUses ?? Infinity, executor.maxCalls))
      return hostedFailure("max-uses-exceeded");
    this.#usesOf.set(tool, uses);
    const input = call.arguments.trim() === "" ? {} : objectIn(call.arguments);
    if (!input) return hostedFailure("invalid-input", "The arguments are not the JSON of an object.");
    return within(executor.timeoutMs, this.#signal, (signal) =>
      executor.run({ tool, name: one.name, arguments: input, messages, owner: this.#owner }, signal),
    );
  }
}

/** Resolves with a failure when the time is over, even if the work ignores its signal. */
async function within<T>(
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | HostedFailure> {
  const controller = new AbortController();
  return new Promise((resolve) => {
    const end = (value: T | HostedFailure): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
      resolve(value);
    };
    const abandon = (): void => {
      controller.abort();
      end(hostedFailure("unavailable", "The request was cancelled."));
    };
    const timer = setTimeout(() => {
      controller.abort();
      end(hostedFailure("timeout"));
    }, timeoutMs);
    signal.addEventListener("abort", abandon);
    if (signal.aborted) return abandon();
    Promise.resolve()
      .then(() => work(controller.signal))
      .then(end, (error: unknown) => {
        const message = error instanceof FailureError ? error.failure.message : undefined;
        end(hostedFailure("unavailable", message));
      });
  });
}

/** How a server of the client's API is asked. */
interface Forwarding {
  /** `runsHosted`. */
  readonly runs?: ((tool: HostedTool) => boolean) | undefined;
  /** Whether that server runs hosted tools; undefined: not known. */
  readonly runsHostedTools?: boolean | undefined;
}

/**
 * Whether hosted tools of a request run here, although the model's server speaks the client's API and would be sent them. A server that is
 * known to run hosted tools gets them, but for those that are named as in this configuration (`mcp:NAME`, `hosted_tools`), which it does not know. One that runs
 * none gets none. Any other gets those of requests for which nothing is configured here. Throws `FailureError` for a request with tools of
 * both: an answer comes from one place.
 */
export function runsHere({ hostedTools = [] }: GenerationRequest, { runs, runsHostedTools }: Forwarding): boolean {
  if (hostedTools.length === 0 || runsHostedTools === false) return hostedTools.length > 0;
  const runsTool = (tool: HostedTool): boolean => {
    try {
      return runs?.(tool) === true;
    } catch {
      // An MCP server that is not configured here.
      return false;
    }
  };
  if (runsHostedTools !== true) return hostedTools.some(runsTool);
  const own = hostedTools.find(
    (tool) => (tool.isOwn === true || tool.options.server?.url?.startsWith("mcp:") === true) && runsTool(tool),
  );
  const other = own && hostedTools.find((tool) => !runsTool(tool));
  if (other)
    throw invalidRequest(
      `This server runs ${own.options.server?.url ?? own.name}, and the model's server runs ${other.type}: a request can have tools of one of them only. Send two requests, or configure ${other.type} in hostedTools.`,
      other.path,
    );
  return own !== undefined;
}

/** Returns whether a hosted tool is run; throws `FailureError` for one that the configuration does not allow. */
export function runsHosted(executors: HostedToolExecutors | undefined): ((tool: HostedTool) => boolean) | undefined {
  return executors && ((tool) => executors.find(tool) !== undefined);
}
