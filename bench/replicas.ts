import { rmSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { startCachingServer } from "../test/support/caching-server.ts";
import type { CachingServer } from "../test/support/caching-server.ts";
import { startTruewire } from "../test/support/serve.ts";
import { storesNothing } from "../test/support/stores-nothing.ts";

/**
 * What `balance: prefix` saves: the same conversations over four servers with prompt caches as llama.cpp's, of four slots each. The servers
 * are asked in rotation without a gateway, through a gateway that chooses the least busy one, and through one that chooses by the
 * conversation; the gateways with one process and with two workers. The table has the share of the prompts' tokens that came from the cache,
 * and the time to the first token, in milliseconds: median, 95th percentile.
 *
 *     npm run build && npm run bench replicas -- [--conversations 17] [--turns 6] [--parallel 8] [--tokens-per-ms 10]
 *
 * The servers compute nothing: a token of a prompt that is not cached takes them 1 / `tokens-per-ms` milliseconds.
 */
const { values } = parseArgs({
  options: {
    conversations: { type: "string", default: "17" },
    turns: { type: "string", default: "6" },
    parallel: { type: "string", default: "8" },
    "tokens-per-ms": { type: "string", default: "10" },
  },
});
const [conversations, turns, parallel] = [values.conversations, values.turns, values.parallel].map(Number) as [
  number,
  number,
  number,
];
const folder = mkdtempSync(join(tmpdir(), "truewire-replicas-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

interface Turn {
  readonly role: string;
  readonly content: string;
}

const words = (name: string, count: number): string =>
  Array.from({ length: count }, (_, at) => `${name}${at}`).join(" ");

/** Sends a request and returns the milliseconds until its first text, and the answer. */
async function ask(url: string, messages: readonly Turn[]): Promise<{ firstMs: number; text: string }> {
  const begun = performance.now();
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages, stream: true }),
  });
  if (!response.ok || !response.body) throw new Error(`status ${response.status}: ${await response.text()}`);
  let firstMs: number | undefined;
  let stream = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    stream += chunk;
    if (firstMs === undefined && stream.includes('"content":"Answer')) firstMs = performance.now() - begun;
  }
  const text = /"content":"(Answer[^"]*)"/.exec(stream)?.[1] ?? "";
  return { firstMs: firstMs ?? performance.now() - begun, text };
}

/** Runs all conversations, `parallel` at a time, and returns the times to the first token. */
async function talk(urlOf: () => string): Promise<number[]> {
  const histories = Array.from({ length: conversations }, (_, at): Turn[] => [
    { role: "system", content: words("rule", 500) },
    { role: "user", content: words(`c${at}-`, 1500) },
  ]);
  const times: number[] = [];
  const rounds = Array.from({ length: turns }, (_, turn) => histories.map((messages) => ({ messages, turn }))).flat();
  const busy = new Set<Turn[]>();
  const client = async (): Promise<void> => {
    for (;;) {
      const at = rounds.findIndex(({ messages }) => !busy.has(messages));
      const next = at === -1 ? undefined : rounds.splice(at, 1)[0];
      if (!next) {
        if (rounds.length === 0) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      busy.add(next.messages);
      const { firstMs, text } = await ask(urlOf(), next.messages);
      times.push(firstMs);
      next.messages.push({ role: "assistant", content: text }, { role: "user", content: words(`t${next.turn}-`, 300) });
      busy.delete(next.messages);
    }
  };
  await Promise.all(Array.from({ length: parallel }, client));
  return times.toSorted((one, other) => one - other);
}

async function measure(name: string, balance: string | null, workers: number): Promise<void> {
  const servers = await Promise.all(
    [1, 2, 3, 4].map(() => startCachingServer({ slots: 4, tokensPerMs: Number(values["tokens-per-ms"]) })),
  );
  const urls = servers.map(({ url }) => url);
  let times: number[];
  if (balance === null) {
    let turn = 0;
    times = await talk(() => urls[turn++ % urls.length] ?? "");
  } else {
    const file = join(folder, `${balance}-${workers}.yaml`);
    const upstream = { kind: "upstream", name: "up", url: urls, models: ["m"], balance };
    writeFileSync(
      file,
      stringify({ port: 0, workers, logLevel: "warn", inspect: false, ...storesNothing, models: [upstream] }),
    );
    const gateway = await startTruewire(["--config", file]);
    times = await talk(() => `${gateway.url}/v1`);
    await gateway.stop();
  }
  report(name, servers, times);
  await Promise.all(servers.map((server) => server.close()));
}

function report(name: string, servers: readonly CachingServer[], times: readonly number[]): void {
  const answered = servers.flatMap(({ answered: each }) => each);
  const prompt = answered.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  const cached = answered.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);
  const quantile = (q: number): string => (times[Math.floor(q * (times.length - 1))] ?? 0).toFixed(0);
  const columns = [
    name.padEnd(24),
    `${((100 * cached) / prompt).toFixed(1)} %`.padStart(13),
    quantile(0.5).padStart(8),
    quantile(0.95).padStart(7),
    servers
      .map(({ answered: each }) => each.length)
      .join(" ")
      .padStart(16),
  ];
  console.log(columns.join(" "));
}

console.log("balance                  cached tokens  TTFT p50     p95  requests of each");
await measure("in rotation, no gateway", null, 1);
for (const workers of [1, 2]) {
  const of = workers === 1 ? "" : `, ${workers} workers`;
  await measure(`least-busy${of}`, "least-busy", workers);
  await measure(`prefix${of}`, "prefix", workers);
}
process.exit();
