import {
  type CallToolResult,
  Client,
  type JsonSchemaType,
  type JsonSchemaValidator,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client";
import { createRequire } from "node:module";

/** The longest answer of a server over HTTP, in bytes; also of the stream of its notifications, which is then opened again. */
const maxAnswer = 8 * 1024 * 1024;
/** The longest list of functions: in all its pages, with their schemas in characters. */
const maxPages = 32;
const maxTools = 512;
const maxListLength = 2 * 1024 * 1024;

const { version } = createRequire(import.meta.url)("truewire/package.json") as { readonly version: string };

/** An open session with an MCP server. */
export class McpConnection {
  readonly #client: Client;
  /** Resolves when the session has ended. */
  readonly closed: Promise<void>;
  readonly #maxListAgeMs: number;
  #tools: Promise<readonly Tool[]> | undefined;
  #listedAt = 0;

  private constructor(client: Client, closed: Promise<void>, maxListAgeMs: number) {
    this.#client = client;
    this.closed = closed;
    this.#maxListAgeMs = maxListAgeMs;
  }

  /** Opens a session. Rejects with the SDK's error. `maxListAgeMs`: how long the list of functions is believed without a report of a change. */
  static async open(transport: Transport, timeoutMs: number, maxListAgeMs = Infinity): Promise<McpConnection> {
    let connection: McpConnection | undefined;
    const client = new Client(
      { name: "truewire", version },
      {
        versionNegotiation: { mode: "auto" },
        // The model reads the result, whatever its form is: nothing compiles a stranger's schema.
        jsonSchemaValidator: { getValidator: unjudged },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => connection?.forgetTools() } },
      },
    );
    const closed = new Promise<void>((resolve) => {
      // Errors are reported by the calls that fail.
      Object.assign(client, { onclose: resolve, onerror: () => {} } satisfies Pick<Client, "onclose" | "onerror">);
    });
    try {
      await client.connect(transport, { timeout: timeoutMs });
    } catch (error) {
      await client.close().catch(() => {});
      throw error;
    }
    return (connection = new McpConnection(client, closed, maxListAgeMs));
  }

  /** The next list is asked for again. */
  forgetTools(): void {
    this.#tools = undefined;
  }

  /** The server's functions, which are kept until it reports a change. Rejects with an Error with a reason, or the SDK's. */
  tools(timeoutMs: number): Promise<readonly Tool[]> {
    const now = performance.now();
    if (this.#tools && now - this.#listedAt < this.#maxListAgeMs) return this.#tools;
    const tools = this.#listTools(timeoutMs);
    this.#listedAt = now;
    // One that failed is asked for again.
    tools.catch(() => {
      if (this.#tools === tools) this.#tools = undefined;
    });
    return (this.#tools = tools);
  }

  /** Rejects with the SDK's error. */
  call(
    tool: Tool,
    given: Readonly<Record<string, unknown>>,
    timeout: number,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    return this.#client.callTool({ name: tool.name, arguments: given }, { signal, timeout, toolDefinition: tool });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #listTools(timeoutMs: number): Promise<readonly Tool[]> {
    if (!this.#client.getServerCapabilities()?.tools) return [];
    const tools: Tool[] = [];
    const signal = AbortSignal.timeout(timeoutMs);
    let cursor: string | undefined;
    let length = 0;
    for (let pages = 0; pages < maxPages; pages++) {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#client.request({ method: "tools/list", params }, { signal, timeout: timeoutMs });
      tools.push(...page.tools);
      length += JSON.stringify(page.tools).length;
      if (tools.length > maxTools || length > maxListLength) break;
      cursor = page.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw new Error("its list of functions is too long");
  }
}

function unjudged<T>(_schema: JsonSchemaType): JsonSchemaValidator<T> {
  return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
}

/** The way to a server over Streamable HTTP. No redirect is followed: it would lead elsewhere than the configuration says. */
export function httpTransport(url: string, headers: Readonly<Record<string, string>>): Transport {
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (to, init) => limited(await fetch(to, { ...init, redirect: "manual" })),
  });
}

/** A session that the server no longer knows: a new one must be opened. Source: the specification's "Session Management". */
export function isExpired(error: unknown): boolean {
  return error instanceof SdkHttpError && error.status === 404;
}

function limited(response: Response): Response {
  if (!response.body) return response;
  let size = 0;
  const counted = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        size += chunk.length;
        if (size > maxAnswer) controller.error(new Error(`it sent more than ${maxAnswer} bytes`));
        else controller.enqueue(chunk);
      },
    }),
  );
  return new Response(counted, response);
}
