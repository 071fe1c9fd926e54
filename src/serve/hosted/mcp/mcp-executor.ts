import { ProtocolError, SdkError, SdkHttpError } from "@modelcontextprotocol/client";
import type {
  HostedCall,
  HostedFailure,
  HostedFunction,
  HostedResult,
  HostedServer,
  HostedTool,
} from "../../../wire/core/hosted-tool.ts";
import { abandoned, type ExecutorSetup, failure, type OpenExecutor, shown } from "../executor.ts";
import { isExpired, type McpConnection } from "./connection.ts";
import { contentsOf, functionOf, isAllowedFunction } from "./contents.ts";
import { type HttpServerSetup, openHttpServer, openStdioServer, type Sessions } from "./mcp-server.ts";
import type { StdioCommand } from "./stdio-transport.ts";

export interface McpSetup extends ExecutorSetup {
  readonly server: StdioCommand | HttpServerSetup;
  /** The names of the functions that clients may use; absent: all. */
  readonly functions?: readonly string[] | undefined;
}

/** Opens an MCP server: a child process is started now, a server over HTTP is asked when it is needed. */
export function openMcp(setup: McpSetup): OpenExecutor {
  const { name, timeoutMs, maxCalls, server } = setup;
  const executor = new McpExecutor(
    setup,
    "url" in server ? openHttpServer(server, setup) : openStdioServer(server, setup),
  );
  return {
    name,
    kind: "mcp",
    timeoutMs,
    maxCalls,
    functions: (tool, signal) => executor.functions(tool, signal),
    run: (call, signal) => executor.run(call, signal),
    close: () => executor.close(),
  };
}

class McpExecutor {
  readonly #setup: McpSetup;
  readonly #sessions: Sessions;

  constructor(setup: McpSetup, sessions: Sessions) {
    this.#setup = setup;
    this.#sessions = sessions;
  }

  async functions(tool: HostedTool, signal: AbortSignal): Promise<readonly HostedFunction[] | HostedFailure> {
    const { server } = tool.options;
    if (server?.listed) return this.#allowed(server.listed, server);
    try {
      const listed = await this.#inSession(server, signal, (session) => session.tools(this.#setup.timeoutMs));
      return this.#allowed(listed.map(functionOf), server);
    } catch (error) {
      return this.#failureOf(error, signal);
    }
  }

  async run({ tool, name, arguments: given }: HostedCall, signal: AbortSignal): Promise<HostedResult> {
    const { maxOutput, timeoutMs } = this.#setup;
    try {
      const { server } = tool.options;
      return await this.#inSession(server, signal, async (session) => {
        const listed = await session.tools(timeoutMs);
        const called = listed.find((each) => each.name === name);
        if (!called || this.#allowed([functionOf(called)], server).length === 0)
          return failure("invalid-input", `The MCP server has no function ${shown(name)} that may be called.`);
        const result = await session.call(called, given, timeoutMs, signal);
        this.#sessions.succeeded?.();
        return contentsOf(result, maxOutput);
      });
    } catch (error) {
      return this.#failureOf(error, signal);
    }
  }

  close(): Promise<void> {
    return this.#sessions.close();
  }

  /** Those that the configuration and the client allow. */
  #allowed(listed: readonly HostedFunction[], server: HostedServer | undefined): readonly HostedFunction[] {
    const { functions } = this.#setup;
    return listed.filter(
      (one) => (functions === undefined || functions.includes(one.name)) && isAllowedFunction(one, server ?? {}),
    );
  }

  /** Does something in a session. One that the server has forgotten is opened again: it has refused the request, and run nothing. */
  async #inSession<T>(
    server: HostedServer | undefined,
    signal: AbortSignal,
    work: (session: McpConnection) => Promise<T>,
  ): Promise<T> {
    const headers = headersOf(server);
    for (let attempt = 1; ; attempt++) {
      const session = await unlessAborted(this.#sessions.session(headers), signal);
      try {
        return await unlessAborted(work(session), signal);
      } catch (error) {
        if (attempt > 1 || !isExpired(error)) throw error;
        this.#sessions.forget(session);
      }
    }
  }

  /** The words of the protocol's errors are for the model; those of the way there are for the log. */
  #failureOf(error: unknown, signal: AbortSignal): HostedFailure {
    if (signal.aborted) return abandoned;
    const reason = error instanceof Error ? error.message : String(error);
    this.#setup.log?.(`the MCP server ${this.#setup.name} failed: ${shown(reason, 1000)}`, "warn");
    if (error instanceof ProtocolError)
      return failure("protocol-error", `The MCP server refused the call: ${shown(reason, 1000)}`);
    if (error instanceof SdkHttpError)
      return failure("unavailable", `The MCP server answered with status ${error.status}.`, error.status);
    if (error instanceof SdkError && error.code === "REQUEST_TIMEOUT")
      return failure("timeout", "The MCP server did not answer in time.");
    return failure("unavailable", "The MCP server does not answer, or not as the protocol says.");
  }
}

/** Headers of a client that would change how the request is sent, and not what it may do. */
const ofTransport =
  /^(?:accept|connection|content-|cookie|expect|host|last-event-id|mcp-|proxy-|te$|trailer|transfer-|upgrade)/i;

/** The credentials of the client, for servers over HTTP. A token alone is one of type Bearer. */
function headersOf(server: HostedServer | undefined): Readonly<Record<string, string>> {
  const { headers = {}, authorization } = server ?? {};
  const own = Object.entries(headers).flatMap(([name, value]) =>
    ofTransport.test(name) ? [] : [[name.toLowerCase(), value] as const],
  );
  const given = authorization !== undefined && /\s/.test(authorization) ? authorization : `Bearer ${authorization}`;
  return Object.fromEntries([...own, ...(authorization === undefined ? [] : [["authorization", given] as const])]);
}

/** Rejects when the signal aborts: what is shared goes on for other calls. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
