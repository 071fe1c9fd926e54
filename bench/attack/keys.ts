// Attacks on money and on keys at run time: guessed keys and admin keys, price lists, and whether a credential gets into the log.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parsePriceList } from "../../src/serve/config/prices-schema.ts";
import { startTruewire } from "../../test/support/serve.ts";
import type { RunningTruewire } from "../../test/support/serve.ts";
import { startScripted } from "../../test/upstream/scripted-server.ts";
import type { Attack, AttackOutcome } from "./attack.ts";

const adminKey = "admin-of-the-attack-0123456789";
const vendorKey = "sk-vendor-of-the-attack-0123456789";

/** A server with managed keys, one of which it creates, in front of a program and of a vendor that does not answer. */
async function attacked(
  attack: (server: RunningTruewire, key: string, failures: string[]) => Promise<string>,
): Promise<AttackOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
  writeFileSync(join(folder, "p.mjs"), `export default () => "word";`);
  const vendor = { kind: "upstream", url: "http://127.0.0.1:1/v1", key: [vendorKey, `${vendorKey}-2`], models: ["v"] };
  const config = { port: 0, adminKey, managedKeys: true, store: join(folder, "store"), models: ["./p.mjs", vendor] };
  writeFileSync(join(folder, "truewire.json"), JSON.stringify(config));
  const server = await startTruewire(["--config", join(folder, "truewire.json")], { cwd: folder });
  const failures: string[] = [];
  const began = performance.now();
  try {
    const created = await admin(server, adminKey, "POST", "keys", { name: "alice" });
    const { key } = (await created.json()) as { key: string };
    const answered = await attack(server, key, failures);
    const status = await chat(server, key, "p");
    if (status !== 200) failures.push(`a client with a key was answered ${status}`);
    const log = server.stdout() + server.stderr();
    for (const secret of [key, adminKey, vendorKey])
      if (log.includes(secret)) failures.push("a credential is in the log");
    return { answered, others: `a client with a key: ${status}`, tookMs: performance.now() - began, failures };
  } finally {
    await server.stop("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function admin(server: RunningTruewire, key: string, method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${server.url}/admin/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function chat({ url }: RunningTruewire, key: string, model: string): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  await response.text();
  return response.status;
}

export function counted(statuses: readonly number[]): string {
  const counts = new Map<number, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${status} ×${count}`).join(", ");
}

/** A vendor that repeats the credentials that it gets, in an error page, a JSON error and a stream. */
async function ownKeys(): Promise<AttackOutcome> {
  const began = performance.now();
  const failures: string[] = [];
  let turn = 0;
  const vendor = await startScripted((response, body) => {
    const said = `no ${JSON.stringify(vendor.requests.at(-1)?.headers)}`;
    const error = JSON.stringify({ error: { message: said } });
    const page = turn++ % 2 === 0 ? error : `<h1>${said}</h1>`;
    response.writeHead(body["stream"] === true ? 200 : 401, { "x-request-id": "a" });
    response.end(body["stream"] === true ? `data: ${error}\n\n` : page);
  });
  const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
  const upstream = { kind: "upstream", url: vendor.url, models: ["v"], passKey: { requestsPerMinute: 10_000 } };
  const config = { port: 0, adminKey, inspect: true, logLevel: "debug", models: [upstream] };
  writeFileSync(join(folder, "truewire.json"), JSON.stringify(config));
  const server = await startTruewire(["--config", join(folder, "truewire.json")], { cwd: folder });
  try {
    const body = { model: "v", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, at) => {
        const key = `sk-own-key-of-the-attack-${at}`;
        const headers = { "content-type": "application/json", ...(at % 2 ? { "x-api-key": key } : bearer(key)) };
        const path = at % 2 ? "messages" : "chat/completions";
        const init = { method: "POST", headers, body: JSON.stringify({ ...body, stream: at % 3 === 0 }) };
        const response = await fetch(`${server.url}/v1/${path}`, init);
        return { status: response.status, text: await response.text() };
      }),
    );
    const listed = await (await admin(server, adminKey, "GET", "requests")).text();
    const shown = [...listed.matchAll(/"id":"([^"]+)"/g)].slice(0, 50).map(async ([, id]) => {
      const response = await admin(server, adminKey, "GET", `requests/${id}`);
      return response.text();
    });
    const metrics = await (await fetch(`${server.url}/metrics`, { headers: bearer(adminKey) })).text();
    const places = { answer: answers.map(({ text }) => text), log: [server.stdout() + server.stderr()] };
    const all = { ...places, Inspect: [listed, ...(await Promise.all(shown))], metrics: [metrics] };
    for (const [place, texts] of Object.entries(all))
      if (texts.some((text) => text.includes("sk-own-key"))) failures.push(`a client's key is in: ${place}`);
    const answered = counted(answers.map(({ status }) => status));
    return { answered, others: "", tookMs: performance.now() - began, failures };
  } finally {
    await server.stop("SIGKILL");
    await vendor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

export const attacks: readonly Attack[] = [
  {
    name: "1,000 guessed keys, each of which is looked for in the store",
    run: () =>
      attacked(async (server, _, failures) => {
        const guesses = Array.from({ length: 1000 }, (_, at) => chat(server, `tw-guess-${at}`, "p"));
        const statuses = await Promise.all(guesses);
        if (statuses.some((status) => status !== 401)) failures.push("a guessed key was answered");
        return counted(statuses);
      }),
  },
  {
    name: "the keys API with a client's key, with none, and from another page",
    run: () =>
      attacked(async (server, key, failures) => {
        const asks = ["", key, `${adminKey}x`].flatMap((credential) => [
          admin(server, credential, "GET", "keys"),
          admin(server, credential, "POST", "keys", { name: "mallory" }),
          admin(server, credential, "GET", "usage"),
        ]);
        const headers = { authorization: `Bearer ${adminKey}`, origin: "https://evil.example" };
        const page = fetch(`${server.url}/admin/keys`, { method: "POST", headers, body: '{"name":"mallory"}' });
        const statuses = (await Promise.all([...asks, page])).map(({ status }) => status);
        if (statuses.some((status) => status < 401 || status > 403)) failures.push("a stranger used the keys API");
        return counted(statuses);
      }),
  },
  {
    name: "a failing vendor and wrong settings: no credential in the log",
    run: () =>
      attacked(async (server, key) => {
        const wrong = [{ name: "x", hash: "y" }, { name: "" }, { name: "x", budget: { day: key } }];
        const refused = await Promise.all(wrong.map((body) => admin(server, adminKey, "POST", "keys", body)));
        return counted([await chat(server, key, "v"), ...refused.map(({ status }) => status)]);
      }),
  },
  {
    name: "a client's own key (passKey), which the vendor quotes in errors and streams; 500 clients with made-up keys",
    run: ownKeys,
  },
  {
    name: "price lists: 20,000 models, wrong values, members of Object's prototype",
    async run() {
      const began = performance.now();
      const failures: string[] = [];
      const large = Array.from({ length: 20_000 }, (_, at) => [`m${at}`, { input_cost_per_token: 1e-6 }]);
      const read = parsePriceList(JSON.stringify(Object.fromEntries(large)), "prices.json").size;
      if (read !== 20_000) failures.push(`${read} of 20,000 prices were read`);
      const lists = ["[".repeat(50_000), '{"m":{"input_cost_per_token":-1}}', '{"m":{"input_cost_per_token":"1e999"}}'];
      const errors = lists.map((list) => {
        try {
          parsePriceList(list, "prices.json");
          return failures.push("a wrong list was read");
        } catch (error) {
          return (error as Error).name;
        }
      });
      const own = '{"__proto__":{"input_cost_per_token":1},"constructor":{"input_cost_per_token":1}}';
      parsePriceList(own, "prices.json");
      if ("input" in {}) failures.push("an object has a price");
      return { answered: errors.join(", "), others: "", tookMs: performance.now() - began, failures };
    },
  },
];
