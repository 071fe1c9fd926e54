import type { IncomingMessage } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { afterEach, describe, expect, test } from "vitest";
import { StdioTransport } from "../../src/serve/hosted/mcp/stdio-transport.ts";
import { openMcp, type McpSetup } from "../../src/serve/hosted/mcp/mcp-executor.ts";
import type { OpenExecutor } from "../../src/serve/hosted/executor.ts";
import type { HostedFunction, HostedResult, HostedServer, HostedTool } from "../../src/wire/core/hosted-tool.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";
import { listen, type Listening } from "../support/listen.ts";

const script = new URL("mcp-server.mjs", import.meta.url).pathname;
const open: (OpenExecutor | Listening)[] = [];
const lines: string[] = [];

afterEach(async () => {
  lines.length = 0;
  for (const one of open.splice(0)) await one.close();
});

function opened(server: McpSetup["server"], setup: Partial<McpSetup> = {}): OpenExecutor {
  const executor = openMcp({
    name: "test",
    timeoutMs: 20_000,
    maxCalls: 10,
    maxOutput: 100_000,
    log: (line) => void lines.push(line),
    server,
    ...setup,
  });
  open.push(executor);
  return executor;
}

function stdio(behaviour = "plain", setup: Partial<McpSetup> = {}): OpenExecutor {
  return opened({ command: process.execPath, args: [script, behaviour], env: { GIVEN: "1" } }, setup);
}

function tool(server: Partial<HostedServer> = {}): HostedTool {
  const label = "test";
  return {
    type: "mcp",
    kind: "mcp",
    name: label,
    options: { server: { label, ...server } },
    path: "tools[0]",
    declaration: {},
  };
}

const never = new AbortController().signal;

function call(
  executor: OpenExecutor,
  name: string,
  given: Readonly<Record<string, unknown>> = {},
  { of = tool(), signal = never }: { readonly of?: HostedTool; readonly signal?: AbortSignal } = {},
): Promise<HostedResult> {
  return executor.run({ tool: of, name, arguments: given, messages: [], owner: "one" }, signal);
}

async function names(executor: OpenExecutor, of = tool()): Promise<readonly string[]> {
  const functions = await executor.functions(of, never);
  return "kind" in functions ? [functions.message] : functions.map(({ name }) => name);
}

function textIn(result: HostedResult): string {
  const [part] = result.kind === "contents" ? result.contents : [];
  return part?.type === "text" ? part.text : "";
}

const textOf = (text: string): object => ({ kind: "contents", isError: false, contents: [{ type: "text", text }] });

describe("a server that is a child process", () => {
  test("lists its functions and runs them", async () => {
    const executor = stdio();
    const functions = (await executor.functions(tool(), never)) as readonly HostedFunction[];
    expect(functions[0]).toMatchObject({
      name: "add",
      description: "Adds two numbers",
      parameters: { type: "object", required: ["a", "b"] },
      readOnly: true,
    });
    expect(await call(executor, "add", { a: 2, b: 3 })).toEqual(textOf("5"));
  });

  test("has an environment of few variables, without those of this process", async () => {
    process.env["TRUEWIRE_TEST_SECRET"] = "secret";
    try {
      const result = await call(stdio(), "environment");
      const text = textIn(result);
      expect(text).toContain("GIVEN");
      expect(text).toContain("PATH");
      expect(text).not.toContain("TRUEWIRE");
    } finally {
      delete process.env["TRUEWIRE_TEST_SECRET"];
    }
  });

  test("offers what the configuration and the client allow, and runs nothing else", async () => {
    const executor = stdio("plain", { functions: ["add", "fail", "long"] });
    expect(await names(executor)).toEqual(["add", "fail", "long"]);
    expect(await names(executor, tool({ allowed: { names: ["add", "identity"] } }))).toEqual(["add"]);
    expect(await names(executor, tool({ allowed: { readOnly: true } }))).toEqual(["add"]);
    expect(await names(executor, tool({ excluded: ["add"] }))).toEqual(["fail", "long"]);
    const of = tool({ allowed: { names: ["fail"] } });
    expect(await call(executor, "add", { a: 1, b: 1 }, { of })).toMatchObject({ code: "invalid-input" });
    expect(await call(executor, "identity")).toMatchObject({ code: "invalid-input" });
  });

  test("is not asked for a list that the client has; what is not its function does not run", async () => {
    const executor = stdio("plain", { functions: ["add", "invented"] });
    const of = tool({ listed: [{ name: "add" }, { name: "invented" }, { name: "long" }] });
    expect(await names(executor, of)).toEqual(["add", "invented"]);
    expect(await call(executor, "add", { a: 1, b: 2 }, { of })).toEqual(textOf("3"));
    expect(await call(executor, "invented", {}, { of })).toMatchObject({ code: "invalid-input" });
  });

  test("returns images and files, and names what models are not shown", async () => {
    expect(await call(stdio(), "picture")).toEqual({
      kind: "contents",
      isError: false,
      contents: [
        { type: "text", text: "Here it is:" },
        { type: "image", url: "data:image/png;base64,iVBORw0KGgo=" },
        { type: "text", text: "[An image (image/svg+xml) was left out.]" },
        { type: "text", text: "[A recording (audio/wav) was left out.]" },
        { type: "text", text: "notes: file:///notes.txt" },
        { type: "text", text: "the text of a file" },
      ],
    });
  });

  test("reports its own errors as contents, and those of the protocol as failures", async () => {
    const executor = stdio();
    expect(await call(executor, "fail")).toMatchObject({
      kind: "contents",
      isError: true,
      contents: [{ text: /disk is full/ }],
    });
    expect(await call(executor, "add", { a: "x" })).toMatchObject({ isError: true });
  });

  test("has a limit for its results", async () => {
    const result = await call(stdio(), "long");
    const text = textIn(result);
    expect(text.length).toBeLessThan(100_100);
    expect(text).toMatch(/x\n\[The rest was left out: the result was too long\.\]$/);
  });

  test("is started again when it has ended, and the call that was open fails", async () => {
    const executor = stdio();
    const before = await call(executor, "identity");
    expect(await call(executor, "die")).toMatchObject({ kind: "failure", code: "unavailable" });
    const after = await call(executor, "identity");
    expect(after).toMatchObject({ kind: "contents" });
    expect(after).not.toEqual(before);
    expect(lines.join("\n")).toContain("it ended with exit code 3");
  });

  test("that cannot be started is a failure, and its words are in the log", async () => {
    const executor = stdio("broken");
    expect(await call(executor, "add")).toMatchObject({ kind: "failure", code: "unavailable" });
    await expect.poll(() => lines.join("\n")).toContain("no configuration was found");
    const missing = opened({ command: "truewire-has-no-such-program", args: [], env: {} });
    expect(await names(missing)).toEqual(["The MCP server does not answer, or not as the protocol says."]);
    expect(lines.join("\n")).toContain("truewire-has-no-such-program cannot be started");
  });

  test("hears of a list that has changed", async () => {
    const executor = stdio();
    expect(await names(executor)).not.toContain("grown");
    await call(executor, "grow");
    await expect.poll(() => names(executor)).toContain("grown");
    expect(await call(executor, "grown")).toEqual(textOf("grown"));
  });

  test("that hangs is given up with the signal, and the next call runs", async () => {
    const executor = stdio();
    const controller = new AbortController();
    const hanging = call(executor, "hang", {}, { signal: controller.signal });
    expect(await call(executor, "add", { a: 1, b: 1 })).toEqual(textOf("2"));
    controller.abort();
    expect(await hanging).toMatchObject({ kind: "failure" });
    expect(await call(executor, "add", { a: 1, b: 2 })).toEqual(textOf("3"));
  });

  test("that never answers the beginning of the session is ended", async () => {
    const executor = stdio("mute", { timeoutMs: 300 });
    expect(await call(executor, "add")).toMatchObject({ kind: "failure" });
  });

  test("that sends a message that is too long is ended, and started again", async () => {
    const executor = stdio();
    expect(await call(executor, "raw", { kind: "huge" })).toMatchObject({ kind: "failure", code: "unavailable" });
    expect(await call(executor, "add", { a: 1, b: 1 })).toEqual(textOf("2"));
    expect(lines.join("\n")).toContain("it sent a message of more than");
  });

  // Many servers write lines for people there.
  test.each(["garbage", "wrong", "empty"])("that writes lines that are no messages (%s) goes on", async (kind) => {
    const executor = stdio();
    expect(await call(executor, "raw", { kind })).toEqual(textOf("written"));
    expect(await call(executor, "add", { a: 1, b: 1 })).toEqual(textOf("2"));
    expect(lines).toEqual([]);
  });

  test.each(["endless", "large"])("whose list is %s is refused", async (behaviour) => {
    const executor = stdio(behaviour);
    expect(await names(executor)).toEqual(["The MCP server does not answer, or not as the protocol says."]);
    expect(lines.join("\n")).toContain("its list of functions is too long");
  });

  test("may write byte by byte", async () => {
    expect(await call(stdio("bytes"), "add", { a: 20, b: 22 })).toEqual(textOf("42"));
  });

  test("ends with its executor", async () => {
    const executor = stdio();
    const result = await call(executor, "identity");
    const text = textIn(result);
    await executor.close();
    expect(() => process.kill(Number(text), 0)).toThrow("ESRCH");
  });
});

// The SDK's transport copies what it has of a message with each chunk.
test("reading a message that comes byte by byte takes linear time", () => {
  const growth = growthOf((size) => {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","method":"x","params":{"a":"${"y".repeat(size)}"}}\n`);
    return () => {
      const transport = new StdioTransport({ command: "", args: [], env: {} });
      let received = 0;
      Object.assign(transport, { onmessage: () => void received++ });
      for (let at = 0; at < bytes.length; at++) transport.read(bytes.subarray(at, at + 1));
      return received;
    };
  });
  expect(growth).toBeLessThan(maxGrowth);
});

describe("a server over Streamable HTTP", () => {
  interface HttpDouble {
    readonly url: string;
    readonly requests: IncomingMessage[];
    /** Forgets all sessions, as a server does that was started again. */
    forget(): void;
  }

  /** A server of the SDK with sessions. */
  async function http(answer?: (request: IncomingMessage) => number | undefined): Promise<HttpDouble> {
    const sessions = new Map<string, StreamableHTTPServerTransport>();
    const requests: IncomingMessage[] = [];
    const listener = await listen((request, response) => {
      requests.push(request);
      const status = answer?.(request);
      if (status !== undefined) return void response.writeHead(status, { location: "http://127.0.0.1:9/" }).end("no");
      const id = request.headers["mcp-session-id"] as string | undefined;
      let transport = id === undefined ? undefined : sessions.get(id);
      if (id !== undefined && !transport) return void response.writeHead(404).end("{}");
      if (!transport) {
        const created = new StreamableHTTPServerTransport({
          sessionIdGenerator: () => `session-${sessions.size + 1}-${requests.length}`,
          onsessioninitialized: (session) => void sessions.set(session, created),
        });
        transport = created;
        const server = new McpServer({ name: "http", version: "1" });
        server.registerTool("authorization", {}, ({ requestInfo }) => ({
          content: [{ type: "text", text: JSON.stringify(requestInfo?.headers["authorization"] ?? null) }],
        }));
        void server.connect(created as Parameters<McpServer["connect"]>[0]);
      }
      void transport.handleRequest(request, response);
    });
    open.push(listener);
    return { url: `${listener.url}/mcp`, requests, forget: () => sessions.clear() };
  }

  // A server that was replaced by a new version kept its old functions for as long as it was used.
  test("is asked for its functions again after a while", async () => {
    const { url, requests } = await http();
    const counts: number[] = [];
    for (const maxListAgeMs of [0, Infinity]) {
      const executor = opened({ url, headers: {}, maxListAgeMs });
      await names(executor);
      const before = requests.length;
      expect(await names(executor)).toEqual(["authorization"]);
      counts.push(requests.length - before);
    }
    expect(counts).toEqual([1, 0]);
  });

  test("is asked when it is needed, and once for several calls", async () => {
    const { url, requests } = await http();
    const executor = opened({ url, headers: {} });
    expect(requests).toHaveLength(0);
    expect(await names(executor)).toEqual(["authorization"]);
    expect(await call(executor, "authorization")).toEqual(textOf("null"));
    const begun = requests.filter((request) => request.method === "POST" && !request.headers["mcp-session-id"]);
    await call(executor, "authorization");
    expect(requests.filter((request) => request.method === "POST" && !request.headers["mcp-session-id"])).toHaveLength(
      begun.length,
    );
  });

  test("gets the credentials of each client in a session of its own; those of the configuration win", async () => {
    const { url } = await http();
    const executor = opened({ url, headers: {} });
    const as = (server: Partial<HostedServer>): Promise<HostedResult> =>
      call(executor, "authorization", {}, { of: tool(server) });
    expect(await as({ authorization: "token-of-alice" })).toEqual(textOf('"Bearer token-of-alice"'));
    expect(await as({ authorization: "Basic Ym9i" })).toEqual(textOf('"Basic Ym9i"'));
    expect(
      await as({ headers: { Authorization: "Bearer carol", host: "evil.example", "mcp-session-id": "x" } }),
    ).toEqual(textOf('"Bearer carol"'));
    expect(await as({})).toEqual(textOf("null"));
    const configured = opened({ url, headers: { authorization: "Bearer ours" } });
    expect(await call(configured, "authorization", {}, { of: tool({ authorization: "theirs" }) })).toEqual(
      textOf('"Bearer ours"'),
    );
  });

  test("that has forgotten the session gets a new one", async () => {
    const double = await http();
    const executor = opened({ url: double.url, headers: {} });
    expect(await call(executor, "authorization")).toEqual(textOf("null"));
    double.forget();
    expect(await call(executor, "authorization")).toEqual(textOf("null"));
  });

  test.each([
    [401, { code: "unavailable", status: 401 }],
    [500, { code: "unavailable", status: 500 }],
    // A redirect leads elsewhere than the configuration says.
    [307, { code: "unavailable" }],
  ])("that answers with status %s is a failure without its address", async (status, expected) => {
    const { url, requests } = await http(() => status);
    const result = await call(opened({ url, headers: {} }), "authorization");
    expect(result).toMatchObject({ kind: "failure", ...expected });
    expect(JSON.stringify(result)).not.toContain("127.0.0.1");
    expect(requests.length).toBeGreaterThan(0);
  });

  test("that does not listen is a failure", async () => {
    expect(await call(opened({ url: "http://127.0.0.1:9/mcp", headers: {} }), "x")).toMatchObject({
      code: "unavailable",
    });
  });
});
