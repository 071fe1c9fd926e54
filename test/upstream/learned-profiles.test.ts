import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { createServer } from "../../src/serve/app/create-server.ts";
import { ProfileFile } from "../../src/serve/app/profile-file.ts";
import { forgetLessons, listModels } from "../../src/serve/cli/models-action.ts";
import { knownServer } from "../../src/wire/apis/adapt/known-servers.ts";
import { silentLog } from "../../src/serve/server/log.ts";
import { ask, startGateway } from "./gateway.ts";
import { gemini } from "../doubles/gemini.ts";
import { groq } from "../doubles/groq.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { mistral } from "../doubles/mistral.ts";
import { startChat } from "../doubles/chat-server.ts";
import type { Json, Refusal, Double, ChatServer } from "../doubles/chat-server.ts";

/*
 * Servers that no table knows: what they refuse is learned from the refusal of a request. Before, a client got the refusal, and
 * got it again with each further request.
 */

const closed: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
});

async function start(server: Partial<ChatServer>): Promise<Double> {
  const upstream = await startChat(server, "Hi");
  closed.push(() => upstream.close());
  return upstream;
}

async function setUp(
  server: Partial<ChatServer>,
  options: Parameters<typeof startGateway>[1] = {},
): Promise<{ upstream: Double; truewire: TruewireServer }> {
  const upstream = await start(server);
  const truewire = await startGateway(upstream.url, options);
  closed.push(() => truewire.close(0));
  return { upstream, truewire };
}

const refused = (message: string, status = 400): Refusal => ({ status, body: { error: { message } } });
const user = { role: "user", content: "Hi" };

/** A request with what Groq, Gemini and Mistral refuse. */
const rich = {
  messages: [{ ...user, name: "ada" }, { role: "assistant", content: "Yes?", reasoning_content: "A greeting." }, user],
  max_completion_tokens: 5,
  frequency_penalty: 0.5,
  store: false,
  top_k: 5,
};

describe.each([groq, gemini(), mistral])("$name, at an address that the table does not know", (server) => {
  // All lessons of a request were kept when it succeeded at last, although only the last one had made the difference.
  test.each([false, true])("is learned by refusals, one thing with each request; streamed: %s", async (stream) => {
    const { upstream, truewire } = await setUp({ ...server, owner: "t" });
    const refusals: number[] = [];
    do {
      const before = upstream.refusals.length;
      const answer = await ask(truewire, { ...rich, stream });
      expect(answer.status, answer.text).toBe(200);
      refusals.push(upstream.refusals.length - before);
    } while (refusals.at(-1) !== 0 && refusals.length < 10);
    const [first = 0] = refusals;
    expect(first).toBeGreaterThan(0);
    expect(refusals).toEqual(Array.from({ length: first + 1 }, (_, at) => first - at));
  });

  test("refuses nothing if its profile is set by hand", async () => {
    const hosts = { Groq: "api.groq.com", Gemini: "generativelanguage.googleapis.com", Mistral: "api.mistral.ai" };
    const profile = knownServer(`https://${hosts[server.name as keyof typeof hosts]}/v1`, undefined)?.profile ?? {};
    const drop = [...(profile.drop ?? []), "top_k", "store"];
    const { upstream, truewire } = await setUp(
      { ...server, owner: "t" },
      { requests: { ...(profile as UpstreamModel["requests"]), drop } },
    );
    expect((await ask(truewire, rich)).status).toBe(200);
    expect(upstream.refusals).toEqual([]);
  });
});

describe("a refusal", () => {
  const refusesMember = (name: string) => (body: Json) =>
    body[name] === undefined ? undefined : refused(`property '${name}' is unsupported`);

  test("is passed on where nothing is learned from it", async () => {
    const { upstream, truewire } = await setUp({ refusal: () => refused("temperature: Input should be less than 2") });
    expect((await ask(truewire, { temperature: 2 })).status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });

  test("of the adapted request is passed on, and nothing is kept", async () => {
    const { upstream, truewire } = await setUp({ refusal: () => refused("property 'stop' is unsupported") });
    expect((await ask(truewire, { stop: "x" })).text).toContain("property 'stop' is unsupported");
    expect(upstream.requests.map(({ stop }) => stop)).toEqual(["x", undefined]);
    await ask(truewire, { stop: "x" });
    expect(upstream.requests.map(({ stop }) => stop)).toEqual(["x", undefined, "x", undefined]);
  });

  test("of one member after another is sent again eight times at most", async () => {
    const names = Array.from({ length: 20 }, (_, at) => `member_${at}`);
    const { upstream, truewire } = await setUp({
      refusal: (body) => {
        const name = Object.keys(body).find((one) => one.startsWith("member_"));
        return name === undefined ? undefined : refused(`property '${name}' is unsupported`);
      },
    });
    const answer = await ask(truewire, Object.fromEntries(names.map((name) => [name, 1])));
    expect(answer.status).toBe(400);
    expect(upstream.requests).toHaveLength(9);
  });

  test("with strict is passed on, and the next request that would be adapted is refused in words", async () => {
    const { upstream, truewire } = await setUp(
      { refusal: refusesMember("stop") },
      { strict: true, requests: { drop: ["seed"] } },
    );
    expect((await ask(truewire, { stop: "x" })).text).toContain("property 'stop' is unsupported");
    expect(upstream.requests).toHaveLength(1);
    const answer = await ask(truewire, { seed: 1 });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: {
        param: "seed",
        message: expect.stringContaining("seed: The upstream upstream does not accept") as string,
      },
    });
    const later = await ask(truewire, {
      messages: [user, { role: "assistant", content: "A" }, { role: "system", content: "S" }],
    });
    expect(JSON.parse(later.text)).toMatchObject({ error: { param: "messages[2]" } });
    expect(upstream.requests).toHaveLength(1);
  });

  test("is not answered by an adaptation that is switched off", async () => {
    const { upstream, truewire } = await setUp(
      { refusal: refusesMember("stop") },
      { adapt: { "refused-member": "off" } },
    );
    expect((await ask(truewire, { stop: "x" })).status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });

  test("of logprobs becomes words of this server, without a further attempt, and is not kept", async () => {
    const { upstream, truewire } = await setUp({
      refusal: ({ logprobs }) =>
        logprobs === true ? refused("`logprobs` is not supported with this model") : undefined,
    });
    for (let time = 0; time < 2; time++) {
      const answer = await ask(truewire, { logprobs: true });
      expect(JSON.parse(answer.text)).toMatchObject({ error: { param: "logprobs", code: "unsupported_parameter" } });
    }
    // No request has confirmed it.
    expect(upstream.requests).toHaveLength(2);
  });

  test("of n becomes several requests, streamed or not", async () => {
    const { upstream, truewire } = await setUp(groq);
    const answer = await ask(truewire, { n: 2 });
    expect((JSON.parse(answer.text) as { choices: unknown[] }).choices).toHaveLength(2);
    expect(upstream.requests.map(({ n = 1 }) => n)).toEqual([2, 1, 1]);
    expect((await ask(truewire, { n: 2, stream: true })).text.match(/"finish_reason":"stop"/g)).toHaveLength(2);
    expect(upstream.refusals).toHaveLength(1);
  });

  test("of a template with 500 does not count against the server", async () => {
    const { truewire } = await setUp({
      refusal: ({ messages }) =>
        (messages as Json[]).some(({ role }, at, all) => role === all[at - 1]?.["role"])
          ? refused("Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", 500)
          : undefined,
    });
    for (let time = 0; time < 4; time++) expect((await ask(truewire, { messages: [user, user] })).status).toBe(200);
  });
});

describe("what was learned", () => {
  test("is shown by the admin API with its origin, and kept next to the configuration", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-profiles-"));
    closed.push(() => rm(folder, { recursive: true }));
    const profilesFile = join(folder, "truewire.profiles.json");
    const upstream = await start(groq);
    const open = (): Promise<TruewireServer> =>
      createServer({
        port: 0,
        logLevel: "silent",
        profilesFile,
        models: [{ kind: "upstream", name: "up", url: upstream.url, requests: { callIds: "nine" } }],
      });
    const first = await open();
    for (let time = 0; time < 4; time++) expect((await ask(first, { ...rich, n: 1 })).status).toBe(200);
    const listed = (await (await fetch(`${first.url}/admin/models`)).json()) as { models: Json[] };
    const learned = {
      drop: expect.toSatisfy((drop: string[]) => drop.toSorted().join() === "store,top_k") as unknown,
      dropInMessages: ["name"],
      reasoningHistory: false,
    };
    expect(listed.models[0]).toMatchObject({
      profiles: [
        {
          url: upstream.url,
          model: "m",
          known: {},
          learned: expect.objectContaining(learned),
          lessons: expect.arrayContaining([
            { id: "drop.store", value: "store", learned: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown },
          ]),
          configured: { callIds: "nine" },
        },
      ],
    });
    const printed: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((line: string) => void printed.push(line));
    await listModels({ url: first.url, verbose: true });
    log.mockRestore();
    const shown = printed.join("\n");
    expect(shown).toContain(`m at ${upstream.url}\n  callIds: "nine" (configured)\n  drop: [`);
    expect(shown).toMatch(
      /\n {2}drop\.store was learned \d{4}-\S+; to forget it: truewire models forget m drop\.store/,
    );
    await first.close();
    expect(JSON.parse(await readFile(profilesFile, "utf8"))).toMatchObject({
      version: 1,
      upstreams: { [upstream.url]: { m: { profile: learned } } },
    });
    const refusals = upstream.refusals.length;
    const second = await open();
    closed.push(() => second.close(0));
    expect((await ask(second, rich)).status).toBe(200);
    expect(upstream.refusals).toHaveLength(refusals);
  });

  test("by several processes is in one file, and entries that are no profile are left out", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-profiles-"));
    closed.push(() => rm(folder, { recursive: true }));
    const path = join(folder, "p.json");
    await writeFile(
      path,
      JSON.stringify({ version: 1, upstreams: { "http://a": { bad: { profile: { toolChoices: "auto" } } } } }),
    );
    const [one, two] = [new ProfileFile(path, silentLog), new ProfileFile(path, silentLog)];
    expect(one.get("http://a", "bad")).toBeUndefined();
    one.set("http://a", "m", { profile: { tools: false } });
    two.set("http://a", "n", { profile: { images: false } });
    two.set("__proto__", "__proto__", { profile: { images: false } });
    await one.flush();
    await two.flush();
    const read = new ProfileFile(path, silentLog);
    expect(read.get("http://a", "m")).toEqual({ profile: { tools: false } });
    expect(two.get("http://a", "m")).toEqual({ profile: { tools: false } });
    expect(read.get("http://a", "n")).toEqual({ profile: { images: false } });
  });

  // A file of another kind, or a longer one, was read as an empty one without a word, and then replaced.
  test.each([
    ["no JSON", "{"],
    ["another kind of file", "[]"],
    ["another version", '{"version":2}'],
    ["no upstreams", '{"version":1,"upstreams":[1]}'],
    ["too long", " ".repeat(16 * 1024 * 1024) + "{}"],
  ])("is not written over a file that cannot be read (%s), and the log says so once", async (_, text) => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-profiles-"));
    closed.push(() => rm(folder, { recursive: true }));
    const path = join(folder, "p.json");
    await writeFile(path, text);
    const lines: string[] = [];
    const log = { ...silentLog, warn: (_fields: object, line: string) => void lines.push(line) };
    const file = new ProfileFile(path, log);
    expect(file.get("http://a", "m")).toBeUndefined();
    file.set("http://a", "m", { profile: { tools: false } });
    await file.flush();
    expect(file.get("http://a", "m")).toEqual({ profile: { tools: false } });
    expect(await readFile(path, "utf8")).toBe(text);
    expect(lines).toEqual(["what was learned about upstreams cannot be read"]);
  });

  // There was no way back: a wrong lesson had to be found in the file, and the server stopped.
  test("is undone by a command, one lesson or all, and stays undone in the file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-profiles-"));
    closed.push(() => rm(folder, { recursive: true }));
    const profilesFile = join(folder, "p.json");
    let isStrict = true;
    const upstream = await start({
      refusal: ({ stop, seed }) => {
        if (!isStrict) return undefined;
        if (stop !== undefined) return refused("property 'stop' is unsupported");
        return seed === undefined ? undefined : refused("property 'seed' is unsupported");
      },
    });
    const server = await createServer({
      port: 0,
      logLevel: "silent",
      profilesFile,
      models: [{ kind: "upstream", name: "up", url: upstream.url }],
    });
    closed.push(() => server.close(0));
    const body = { stop: "x", seed: 1 };
    for (let time = 0; time < 3; time++) await ask(server, body);
    isStrict = false;
    expect(upstream.requests.at(-1)).not.toHaveProperty("stop");
    const printed: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((line: string) => void printed.push(line));
    await forgetLessons("m", "drop.stop", { url: server.url });
    await ask(server, body);
    expect(upstream.requests.at(-1)).toMatchObject({ stop: "x" });
    expect(upstream.requests.at(-1)).not.toHaveProperty("seed");
    await forgetLessons("m", undefined, { url: server.url });
    log.mockRestore();
    expect(printed).toEqual(["Forgotten about m: drop.stop.", "Forgotten about m: drop.seed."]);
    await ask(server, body);
    expect(upstream.requests.at(-1)).toMatchObject(body);
    await expect(forgetLessons("m", "tools", { url: server.url })).rejects.toThrow("Nothing named 'tools' was learned");
    await server.close();
    expect(JSON.parse(await readFile(profilesFile, "utf8"))).toMatchObject({
      upstreams: { [upstream.url]: { m: { profile: {} } } },
    });
  });

  // A server without its parser for a while taught, model by model, that none of its models takes tools.
  test("is not believed where every model of a server suddenly cannot what it could, or all cannot it at once", async () => {
    let isBroken = true;
    const models = ["a", "b", "c", "d"];
    const upstream = await startChat(
      {
        name: "",
        owner: "t",
        refusal: ({ tools }) => (isBroken && tools !== undefined ? refused("m does not support tools") : undefined),
      },
      "Hi",
      models,
    );
    closed.push(() => upstream.close());
    const server = await startGateway(upstream.url, {});
    closed.push(() => server.close(0));
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
    const statuses: number[] = [];
    for (const model of models) statuses.push((await ask(server, { model, tools })).status);
    // The third one shows that the server is to blame: its request succeeded without tools, and nothing is kept of the three.
    expect(statuses).toEqual([200, 200, 200, 400]);
    isBroken = false;
    for (const model of models) {
      expect((await ask(server, { model, tools })).status).toBe(200);
      expect(upstream.requests.at(-1)).toMatchObject({ model, tools });
    }
    isBroken = true;
    const again = await ask(server, { model: "a", tools });
    expect([again.status, again.text]).toEqual([400, expect.stringContaining("does not support tools")]);
  });

  // A client could not see that its server had lost a member of its request.
  test("is said in the warning header of each request that lost a member by it", async () => {
    const { truewire } = await setUp({
      refusal: ({ stop }) => (stop === undefined ? undefined : refused("property 'stop' is unsupported")),
    });
    for (const stream of [false, true, false]) {
      const response = await fetch(`${truewire.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: [user], stop: "x", stream, logit_bias: {}, ünknown: 1 }),
      });
      await response.text();
      expect(response.headers.get("x-truewire-warning")).toContain(
        "stop: A member that the server refuses was left out.",
      );
    }
  });
});

// After the first answer of an unknown server, twenty requests that no client had sent evicted its cache.
test("the server gets no request but those of clients", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval"] });
  try {
    const { upstream, truewire } = await setUp({});
    expect((await ask(truewire)).status).toBe(200);
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect((await ask(truewire)).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});
