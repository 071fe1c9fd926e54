import type { RequestListener, ServerResponse } from "node:http";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Report } from "../../src/judge/check/report/report.ts";
import { listen, type Listening } from "../support/listen.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

interface Told {
  readonly type: string;
  readonly done?: number;
  readonly all?: number;
  readonly judgements?: readonly { readonly id: string; readonly findings: readonly { readonly severity: string }[] }[];
  readonly report?: Report;
  readonly error?: { readonly message: string };
}

describe("POST /admin/check", () => {
  let server: RunningTruewire;
  const others: Listening[] = [];
  beforeAll(async () => {
    server = await startTruewire([resolve("test/page/talker.js")]);
  });
  afterAll(async () => {
    await Promise.all(others.map((other) => other.close()));
    await server?.stop();
  });

  function check(body: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(`${server.url}/admin/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...init,
    });
  }

  async function told(response: Response): Promise<Told[]> {
    const text = await response.text();
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json) as Told);
  }

  /** The message of a check that failed: of a 502, or of the stream's last event where the check took longer than half a second. */
  async function failureOf(response: Response): Promise<string | undefined> {
    if (response.status === 200) return (await told(response)).at(-1)?.error?.message;
    expect(response.status).toBe(502);
    return ((await response.json()) as Told).error?.message;
  }

  /** Another server; the base URL of its API. */
  async function other(answer: RequestListener): Promise<string> {
    const made = await listen(answer);
    others.push(made);
    return `${made.url}/v1`;
  }

  test("tells every probe as it comes, and at last what the command reports", async () => {
    const url = `${server.url}/v1`;
    const only = ["text", "wrong/n"];
    const events = await told(await check({ url, only, profile: "lean" }));
    const progress = events.filter(({ type }) => type === "progress");
    const all = progress[0]?.all ?? 0;
    expect(all).toBeGreaterThan(3);
    expect(progress.map(({ done }) => done)).toEqual(Array.from({ length: all }, (_, at) => at + 1));
    const { report } = events.at(-1) ?? {};
    const command = await runTruewire(["check", url, "--only", ...only, "--profile", "lean", "--format", "json"]);
    const expected = JSON.parse(command.stdout) as Report & { exchanges: { id: string }[] };
    expect(report?.counts).toEqual(expected.counts);
    expect(report?.rules.map(({ id, status }) => [id, status])).toEqual(
      expected.rules.map(({ id, status }) => [id, status]),
    );
    const ids = progress.flatMap(({ judgements = [] }) => judgements.map(({ id }) => id));
    expect(ids.toSorted()).toEqual(expected.exchanges.map(({ id }) => id).toSorted());
    const broken = progress.flatMap(({ judgements = [] }) => judgements.flatMap(({ findings }) => findings));
    expect(broken.length).toBe(expected.rules.reduce((sum, { evidence }) => sum + evidence.length, 0));
  });

  test("the key goes to the server under check, and nowhere else", async () => {
    const keys = new Set<string | undefined>();
    const url = await other(({ headers }, response) => {
      keys.add(headers.authorization);
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"No."}}');
    });
    const key = "sk-checked-0123456789";
    const refused = await failureOf(await check({ url, key }));
    expect(refused).toBe(`${url} asks for a key, or for another one (status 401).`);
    expect(keys).toEqual(new Set([`Bearer ${key}`]));
    const wrong = await check({ url, key: "sk-checked 0123456789" });
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).not.toContain("0123456789");
    expect(server.stderr() + server.stdout()).not.toContain("0123456789");
  });

  test("it ends when its client leaves, and makes way for another one", async () => {
    const open = new Set<ServerResponse>();
    const url = await other((request, response) => {
      if (request.method === "GET") return void response.end('{"object":"list","data":[{"id":"mute"}]}');
      open.add(response.on("close", () => open.delete(response)));
    });
    const leaving = [new AbortController(), new AbortController()];
    // The answer is read to its end: its head is sent after half a second at the latest, before or after the client leaves.
    const asked = leaving.map(({ signal }) =>
      check({ url, only: ["text"] }, { signal }).then(
        (response) => response.text().catch(() => "left"),
        () => "left",
      ),
    );
    // Two probes at once, of each.
    await expect.poll(() => open.size).toBe(4);
    const third = await check({ url });
    expect([third.status, third.headers.get("retry-after")]).toEqual([429, "10"]);
    for (const controller of leaving) controller.abort();
    expect(await Promise.all(asked)).toEqual(["left", "left"]);
    await expect.poll(() => open.size).toBe(0);
    expect((await check({ url, only: ["models"], model: "mute" })).status).toBe(200);
  });

  test("a server that cannot be checked is told in words that fit a page", async () => {
    const gone = await failureOf(await check({ url: "http://127.0.0.1:1/v1" }));
    expect(gone).toContain("http://127.0.0.1:1/v1 does not answer: ");
    const empty = await other((_, response) => void response.writeHead(404).end());
    expect(await failureOf(await check({ url: empty }))).toBe(
      `${empty}/models did not return a model list (status 404): name a model.`,
    );
  });

  test("only a base URL of HTTP is taken, and only what is known", async () => {
    const url = "http://127.0.0.1:1/v1";
    for (const [body, param] of [
      ["text", null],
      [{}, "url"],
      [{ url: "ftp://127.0.0.1/v1" }, "url"],
      [{ url: `${url}?x=` }, "url"],
      [{ url: `${url}#x` }, "url"],
      [{ url: "http://me:secret@127.0.0.1:1/v1" }, "url"],
      [{ url, key: "" }, "key"],
      [{ url, key: "a\nb" }, "key"],
      [{ url, model: 1 }, "model"],
      [{ url, only: [] }, "only"],
      [{ url, only: "text" }, "only"],
      [{ url, profile: "strict" }, "profile"],
    ] as const) {
      const response = await check(body);
      expect(response.status, JSON.stringify(body)).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param } });
    }
  });

  // A check sends requests to any address that this machine reaches, and shows the answers.
  test("no page but the server's own may ask for one, under no name that somebody else can own", async () => {
    const body = { url: "http://127.0.0.1:1/v1" };
    const json = { "content-type": "application/json" };
    for (const origin of [
      "http://localhost:3000",
      "https://evil.example",
      "null",
      server.url.replace("127.0.0.1", "localhost"),
    ])
      expect((await check(body, { headers: { ...json, origin } })).status, origin).toBe(403);
    expect(await failureOf(await check(body, { headers: { ...json, origin: server.url } }))).toContain(
      "does not answer",
    );
    // What a form of another page can send.
    expect((await check(body, { headers: { "content-type": "text/plain" } })).status).toBe(415);
  });
});
