import { createClient } from "@redis/client";
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { startAnthropic } from "../doubles/anthropic.ts";
import type { AnthropicDouble } from "../doubles/anthropic.ts";

/* A chat client that returns nothing but calls, over a server that demands its signed thinking back: who finds the turn. */

interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
}

const tools = [{ type: "function", function: { name: "read", parameters: { type: "object", properties: {} } } }];
const keys = { alice: "tw-key-of-alice-0123456789", bob: "tw-key-of-bob-9876543210" };

let double: AnthropicDouble;
let folder: string;
const running: RunningTruewire[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "truewire-memory-"));
  double = await startAnthropic({
    accounts: { "key-a": "a" },
    answer: (body) =>
      (body["messages"] as unknown[]).length < 3
        ? { thinking: "I must read it.", calls: [{ name: "read", input: {} }] }
        : { text: "Done." },
  });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop("SIGKILL")));
  await double.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a server; instances of one name have one folder. `settings`: further lines of its configuration. */
async function serve(...settings: string[]): Promise<RunningTruewire> {
  const path = join(folder, "truewire.yaml");
  const model = `{ kind: upstream, name: claude, api: messages, url: "${double.url}", key: key-a, models: { claude: claude-opus-4-8 } }`;
  writeFileSync(path, ["port: 0", `models: [${model}]`, ...settings].join("\n"));
  const server = await startTruewire(["--config", path, "--log-format", "json"]);
  running.push(server);
  return server;
}

async function ask(server: RunningTruewire, messages: readonly Message[], key: string = keys.alice): Promise<Message> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    // A connection of its own: workers get connections in turn.
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, connection: "close" },
    body: JSON.stringify({ model: "claude", reasoning_effort: "high", tools, messages }),
  });
  const body = (await response.json()) as { readonly choices?: readonly { readonly message: Message }[] };
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(body)}`);
  const [choice] = body.choices ?? [];
  return choice?.message ?? { role: "none" };
}

const question: Message = { role: "user", content: "Read it." };

/** The second request of a session, after the answer to its first one, of which the client returns the calls only. */
function next({ tool_calls: calls = [] }: Message): readonly Message[] {
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "ok" }));
  return [question, { role: "assistant", content: null, tool_calls: calls }, ...results];
}

/** Whether the last request that the double accepted has the thinking of the first turn; its signature was judged by the double. */
function hasThinking(): boolean {
  const messages = double.requests.at(-1)?.["messages"] as readonly { readonly content: unknown }[];
  return JSON.stringify(messages[1]?.content).includes('"type":"thinking"');
}

const withKeys = `apiKey: [${Object.values(keys).join(", ")}]`;

test("a turn is found by the key that it was made for, and by no other", async () => {
  const server = await serve(withKeys);
  const first = await ask(server, [question]);
  await ask(server, next(first), keys.bob);
  expect(hasThinking()).toBe(false);
  await ask(server, next(first));
  expect(hasThinking()).toBe(true);
});

// The owner of a key without a name was its place in the list: a key that took the place of another one had its turns.
test("a key that takes the place of another one in the configuration does not find its turns", async () => {
  const store = `store: "${join(folder, "store")}"`;
  const before = await serve(`apiKey: [${keys.alice}, ${keys.bob}]`, store);
  const first = await ask(before, [question]);
  await before.stop();
  const after = await serve(`apiKey: [${keys.bob}, ${keys.alice}]`, store);
  await ask(after, next(first), keys.bob);
  expect(hasThinking()).toBe(false);
  await ask(after, next(first));
  expect(hasThinking()).toBe(true);
});

test("without memory, nothing is kept, and the session goes on without it", async () => {
  const server = await serve("sessions: { memory: false }");
  await ask(server, next(await ask(server, [question])));
  expect(hasThinking()).toBe(false);
});

test("a folder keeps it over a restart, for its user only, and the log has nothing of it", async () => {
  const settings = [withKeys, `store: "${join(folder, "store")}"`, "logLevel: debug"];
  const before = await serve(...settings);
  const first = await ask(before, [question]);
  await before.stop();
  const after = await serve(...settings);
  await ask(after, next(first));
  expect(hasThinking()).toBe(true);
  const secret = readFileSync(join(folder, "store", "truewire.key"), "utf8").trim();
  for (const server of [before, after])
    for (const text of [secret, "I must read it.", ...Object.values(keys)])
      expect(server.stdout() + server.stderr()).not.toContain(text);
});

describe.skipIf(redisCommand() === undefined)("over Redis", () => {
  let redis: ChildProcess;
  let url: string;
  beforeAll(async () => {
    const port = await freePort();
    redis = await startRedis(port);
    url = `redis://127.0.0.1:${port}`;
  });
  afterAll(() => void redis.kill("SIGKILL"));

  /** Resolves when the turns of all owners are stored: an answer does not wait for it. */
  async function stored(): Promise<void> {
    const client = await createClient({ url }).connect();
    // The keys of a turn refer to its text, and are written after it.
    await until(async () => (await client.keys("truewire:* turn.key.*")).length > 0, "the turn is stored");
    client.destroy();
  }

  test("another instance finds it, and one that starts later", async () => {
    const settings = [withKeys, `store: "${url}"`];
    const [one, other] = [await serve(...settings), await serve(...settings)];
    const first = await ask(one, [question]);
    await stored();
    await ask(other, next(first));
    expect(hasThinking()).toBe(true);
    await ask(other, next(first), keys.bob);
    expect(hasThinking()).toBe(false);
    await Promise.all([one.stop(), other.stop()]);
    await ask(await serve(...settings), next(first));
    expect(hasThinking()).toBe(true);
  });

  test("all workers find it", async () => {
    const server = await serve(withKeys, `store: "${url}"`, "workers: 2");
    const first = await ask(server, [question]);
    const workers = (): number => new Set(server.stderr().match(/"worker":\d+/g)).size;
    // It is stored after the answer was sent, so the other worker may miss it at first.
    let inARow = 0;
    await until(async () => {
      await ask(server, next(first));
      inARow = hasThinking() ? inARow + 1 : 0;
      return inARow >= 8 && workers() === 2;
    }, "both workers find the turn");
  });

  test("while Redis is away, answers come, and the instance finds what it has kept itself", async () => {
    const server = await serve(withKeys, `store: "${url}"`);
    redis.kill("SIGSTOP");
    try {
      const first = await ask(server, [question]);
      await ask(server, next(first));
      expect(hasThinking()).toBe(true);
    } finally {
      redis.kill("SIGCONT");
    }
  });
});
