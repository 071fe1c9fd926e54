import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { startCachingServer } from "../support/caching-server.ts";
import type { CachingServer } from "../support/caching-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { readExposition, total } from "./read-metrics.ts";

interface Miss {
  readonly cause: string;
  readonly where?: string;
  readonly says: string;
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly knownTokens?: number;
}

async function serve(more: object = {}, servers = 1) {
  const sources = await Promise.all(Array.from({ length: servers }, () => startCachingServer(more)));
  closeAfterTest(() => Promise.all(sources.map((source) => source.close())));
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    inspect: true,
    models: [{ kind: "upstream", url: sources.map(({ url }) => url), name: "up", models: { m: "m" } }],
  });
  closeAfterTest(() => server.close(0));
  return { server, sources: sources as [CachingServer, ...CachingServer[]] };
}

type Server = Awaited<ReturnType<typeof serve>>["server"];

async function ask({ url }: Server, messages: readonly object[], more: object = {}): Promise<Miss | null> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-truewire-cache": "explain" },
    body: JSON.stringify({ model: "m", messages, ...more }),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const header = response.headers.get("x-truewire-cache-miss");
  return header === null ? null : (JSON.parse(header) as Miss);
}

const user = (content: string): object => ({ role: "user", content });
const says = (content: string): object => ({ role: "assistant", content });
const system = (content: string): object => ({ role: "system", content });
const rules = Array.from({ length: 300 }, (_, at) => `Rule ${at}: read the file before you edit it.`).join("\n");
const first = user("What is in the folder?");
const turns = [first, says("Two files."), user("Which?")];
const cause = (miss: Miss | null): unknown => miss && [miss.cause, miss.where];

describe("why an upstream processed a prompt again", () => {
  test("a conversation that only grows misses nothing", async () => {
    const { server } = await serve();
    expect(await ask(server, [system(rules), first])).toBeNull();
    expect(await ask(server, [system(rules), ...turns])).toBeNull();
    expect(await ask(server, [system(rules), ...turns, says("a and b."), user("Read a.")])).toBeNull();
    // Another question after the same beginning.
    expect(await ask(server, [system(rules), user("What time is it?")])).toBeNull();
  });

  test.each([
    ["date", "Today is 2026-11-22.", "Today is 2026-11-23."],
    ["date", "It is Sunday, November 22.", "It is Monday, November 23."],
    ["id", "Session 0b6dfb4c-8e0e-4b7c-9d3a-a54b6f0c2d11.", "Session 4f0ad1f2-8e0e-4b7c-9d3a-a54b6f0c2d11."],
    ["counter", "This is request 17.", "This is request 18."],
    ["billing-header", "x-anthropic-billing-header: cch=a;", "x-anthropic-billing-header: cch=b;"],
    ["system-changed", "Be kind.", "Be brief."],
  ])("%s in the system prompt: %s, then %s", async (expected, one, other) => {
    const { server } = await serve();
    await ask(server, [system(`${one}\n${rules}`), first]);
    const miss = await ask(server, [system(`${other}\n${rules}`), ...turns]);
    expect(cause(miss)).toEqual([expected, "messages[0]"]);
    expect(miss?.promptTokens).toBeGreaterThan(2000);
    expect(miss?.cachedTokens).toBeLessThan(100);
    // Digests only: the text of a prompt is not kept, so it cannot be shown.
    expect(miss).not.toHaveProperty("known");
  });

  test("tools, messages, and another system prompt", async () => {
    const tool = (name: string, description = `The ${name}. ${rules}`): object => ({
      type: "function",
      function: { name, description, parameters: { type: "object", properties: {} } },
    });
    const { server } = await serve();
    const tools = [tool("read"), tool("write")];
    await ask(server, [first], { tools });
    expect(cause(await ask(server, turns, { tools: tools.toReversed() }))).toEqual(["tools-reordered", "tools[0]"]);
    expect(cause(await ask(server, turns, { tools: [tool("read", `New. ${rules}`), tool("write")] }))).toEqual([
      "tool-changed",
      "tools[0]",
    ]);
    const { server: second } = await serve();
    const long = [user(`One. ${rules}`), says("First."), user(`Two. ${rules}`), says("Second."), user("Three?")];
    await ask(second, long);
    expect(cause(await ask(second, [user("Left out."), ...long.slice(1), says("Third."), user("Four?")]))).toEqual([
      "message-changed",
      "messages[0]",
    ]);
    const { server: third } = await serve();
    await ask(third, [system(rules), ...turns]);
    expect(
      cause(await ask(third, [system("Speak like a pirate!\n".repeat(600)), ...turns, says("Arr."), user("Go on.")])),
    ).toEqual(["system-replaced", "messages[0]"]);
  });

  test("nothing changed, but another URL got the request, or the source forgot it", async () => {
    const { server } = await serve({}, 2);
    await ask(server, [system(rules), first]);
    const moved = await ask(server, [system(rules), ...turns]);
    expect(moved).toMatchObject({ cause: "other-server" });
    expect(moved?.says).toContain("balance: prefix");
    const { server: forgetful, sources } = await serve({ slots: 1, savedPrompts: 0 });
    await ask(forgetful, [system(rules), first]);
    await fetch(`${sources[0].url}/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", messages: [user("Something else.")] }),
    });
    const miss = await ask(forgetful, [system(rules), ...turns]);
    expect(miss).toMatchObject({ cause: "not-cached" });
    expect(miss?.knownTokens).toBeGreaterThan(2000);
  });

  test("it is counted, and shown in Inspect, of a stream, too", async () => {
    const { server } = await serve();
    await ask(server, [system(`Today is 2026-11-22.\n${rules}`), first]);
    await ask(server, [system(`Today is 2026-11-23.\n${rules}`), ...turns], {
      stream: true,
      stream_options: { include_usage: true },
    });
    const numbers = readExposition(await (await fetch(`${server.url}/metrics`)).text());
    expect(total(numbers, "truewire_cache_misses_total", { gen_ai_request_model: "m", cause: "date" })).toBe(1);
    const { requests } = (await (await fetch(`${server.url}/admin/requests`)).json()) as { requests: { id: string }[] };
    const shown = await Promise.all(
      requests.map(async ({ id }) => (await fetch(`${server.url}/admin/requests/${id}`)).text()),
    );
    expect(shown.filter((text) => text.includes("A date or time changed in messages[0]"))).toHaveLength(1);
  });
});
