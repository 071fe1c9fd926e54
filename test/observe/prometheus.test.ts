import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SearxngDouble, searxngDouble } from "../doubles/searxng.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { standardScripts } from "../fixtures/scripts.ts";
import { freePort } from "../support/redis-server.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { done, event, finish, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { readExposition } from "./read-metrics.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;
if (!hasPrometheus) console.log("skipped: prometheus is not on the PATH");

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard = JSON.parse(readFileSync("docs/grafana-dashboard.json", "utf8")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }, at) => [`${title} ${at + 1}`, expr] as const),
);

// The call of a web search, which Truewire runs.
const call = {
  index: 0,
  id: "call_1",
  type: "function",
  function: { name: "web_search", arguments: '{"query":"notes"}' },
};
const searchCall = event({ tool_calls: [call] }) + event({}, "tool_calls") + done;

const clientKey = "tw-key-of-alice-0123456789";
const metricsKey = "sk-metrics-0123456789";

describe.skipIf(!hasPrometheus)("a Prometheus that reads the numbers of a server under load", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-prometheus-"));
  let upstream: ScriptedServer;
  let searxng: SearxngDouble;
  let truewire: RunningTruewire;
  let prometheus: ChildProcess;
  let url: string;
  const over = new AbortController();
  let load: Promise<unknown>;

  beforeAll(async () => {
    // It fails now and then, and what it says is in need of repair.
    upstream = await startScripted((response, body, attempt) => {
      if (body["model"] === "broken" || (body["model"] === "m" && attempt % 3 === 0))
        return void response.writeHead(500).end();
      response.writeHead(200, { "content-type": "text/event-stream" });
      const { tools, messages } = body as { tools?: unknown; messages: { role: string }[] };
      if (tools !== undefined && messages.at(-1)?.role === "user") return void response.end(searchCall);
      response.end(event({ content: "Hello" }) + event({ content: " there" }) + finish);
    });
    const loop = { say: ["I should check", " this once more,", " I think. "], afterwards: "repeat" } as const;
    writeProgrammedModel(join(folder, "local.gguf"), { scripts: { ...standardScripts, loop } });
    const hash = createHash("sha256").update(clientKey).digest("hex");
    searxng = await searxngDouble([
      { url: "https://truewire.example", title: "Notes", content: "Version 2 is faster." },
    ]);
    const config = [
      "port: 0",
      `hostedTools: { webSearch: "${searxng.url}" }`,
      `metricsKey: ${metricsKey}`,
      'prices: { "*": { input: 1, output: 2 } }',
      `keys: [{ name: alice, hash: "sha256:${hash}" }]`,
      "models:",
      '  - { kind: local, path: local.gguf, slots: 2, contextSize: 4096, threads: 1, gpu: "off" }',
      `  - { kind: upstream, name: other, url: "${upstream.url}" }`,
      `  - { kind: upstream, name: none, url: "${upstream.url}", models: { big: broken }, retries: 0, fallbacks: { big: [m] } }`,
    ];
    writeFileSync(join(folder, "truewire.yaml"), `${config.join("\n")}\n`);
    truewire = await startTruewire(["--config", join(folder, "truewire.yaml"), "--log-level", "silent"]);
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    // As docs/watching.md has it, but more often.
    const scraping = [
      "global: { scrape_interval: 500ms }",
      "scrape_configs:",
      "  - job_name: truewire",
      `    static_configs: [{ targets: ["${new URL(truewire.url).host}"] }]`,
      `    authorization: { credentials: ${metricsKey} }`,
    ];
    writeFileSync(join(folder, "prometheus.yml"), `${scraping.join("\n")}\n`);
    prometheus = spawn(
      "prometheus",
      [
        `--config.file=${join(folder, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=error",
      ],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    const loads: [string, object][] = [
      ["local", { stream: true }],
      ["local", {}],
      ["local", { messages: [{ role: "user", content: "#loop" }] }],
      ["m", { stream: true }],
      ["m", {}],
      ["big", { temperature: 0 }],
      ["big", { temperature: 0 }],
    ];
    const search = { model: "m", input: "What is new?", tools: [{ type: "web_search" }] };
    load = Promise.all([
      ...loads.map(([model, members]) => ask(model, members)),
      repeat(() => post("responses", search)),
    ]);
    await until(async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true, "Prometheus is ready");
  });
  afterAll(async () => {
    over.abort();
    await load;
    prometheus?.kill("SIGKILL");
    await truewire?.stop();
    await upstream?.close();
    searxng?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Asks again and again; every fourth request has a mistake. */
  async function ask(model: string, more: object): Promise<void> {
    const members = { model, messages: [{ role: "user", content: "#plain" }], ...more };
    await repeat((at) => post("chat/completions", at % 4 === 3 ? { ...members, n: 0 } : members));
  }

  async function repeat(once: (at: number) => Promise<void>): Promise<void> {
    for (let at = 0; !over.signal.aborted; at++) {
      await once(at);
      await new Promise((pause) => setTimeout(pause, 20));
    }
  }

  async function post(path: string, body: object): Promise<void> {
    const response = await fetch(`${truewire.url}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${clientKey}` },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    await response?.text();
  }

  async function api<T>(path: string): Promise<T> {
    const answer = (await (await fetch(`${url}/api/v1/${path}`)).json()) as {
      status: string;
      error?: string;
      data: T;
    };
    if (answer.status !== "success") throw new Error(`${path}: ${answer.error ?? ""}`);
    return answer.data;
  }

  interface Result {
    readonly result: readonly { readonly metric: Record<string, string>; readonly value: readonly [number, string] }[];
  }

  /** A query of the dashboard as Grafana sends it with "All" chosen everywhere. Throws where Prometheus refuses it. */
  function query(expression: string): Promise<Result> {
    const bare = expression.replaceAll(/\$(model|api|key)\b/g, ".*").replaceAll("$__rate_interval", "10s");
    return api<Result>(`query?query=${encodeURIComponent(bare)}`);
  }

  async function exposition(): Promise<string> {
    return (await fetch(`${truewire.url}/metrics`, { headers: { authorization: `Bearer ${metricsKey}` } })).text();
  }

  test("it finds every series, each with its type, and no reading fails", async () => {
    // The rarest: an answer that failed, and one that was mended.
    await until(async () => (await query("truewire_repairs_total")).result.length > 0, "repairs are counted");
    await until(
      async () => (await query('gen_ai_server_request_duration_seconds_count{outcome="refused"}')).result.length > 0,
      "failures are",
    );
    const { types, samples } = readExposition(await exposition());
    const names = new Set(samples.map(({ name }) => name));
    let missing: string[] = [];
    await until(async () => {
      const known = new Set(await api<string[]>("label/__name__/values"));
      missing = [...names].filter((name) => !known.has(name));
      return missing.length === 0;
    }, "every series is there").catch(() => {});
    expect(missing).toEqual([]);
    const metadata = await api<Record<string, readonly { type: string; help: string }[]>>("metadata");
    for (const [name, type] of types)
      expect(
        metadata[name]?.map((each) => each.type),
        name,
      ).toEqual([type]);
    const { activeTargets } = await api<{ activeTargets: readonly { health: string; lastError: string }[] }>("targets");
    expect(activeTargets).toMatchObject([{ health: "up", lastError: "" }]);
    expect((await query("min_over_time(up[1h])")).result.map(({ value }) => value[1])).toEqual(["1"]);
    const alice = await query('sum(gen_ai_client_token_usage_sum{key="alice", gen_ai_request_model="local"})');
    expect(Number(alice.result[0]?.value[1])).toBeGreaterThan(0);
  });

  // The servers here give nothing with an answer that they demand back.
  const answered = queries.filter(([name]) => !String(name).startsWith("States of earlier turns"));
  test.each(answered)("the dashboard's %s has data", async (_, expression) => {
    await until(async () => {
      const { result } = await query(expression);
      return result.some(({ value }) => Number.isFinite(Number(value[1])));
    }, "it has data");
  });

  test("the dashboard's lists to choose from have what was asked for", async () => {
    const chosen: string[][] = [];
    for (const { definition } of dashboard.templating.list) {
      const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? "") ?? [];
      if (metric !== undefined) chosen.push(await api<string[]>(`label/${label ?? ""}/values?match[]=${metric}`));
    }
    expect(chosen).toEqual([["big", "local", "m"], ["chat", "responses"], ["alice"]]);
  });

  test("promtool has nothing to say against them", async ({ skip }) => {
    const checked = spawnSync("promtool", ["check", "metrics"], { input: await exposition(), encoding: "utf8" });
    if (checked.error) {
      console.log("skipped: promtool is not on the PATH");
      skip();
    }
    expect(checked.stdout + checked.stderr).toBe("");
    expect(checked.status).toBe(0);
  });
});
