import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { builtMain, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { chat } from "../support/transports.ts";
import { say, startScripted } from "../upstream/scripted-server.ts";
import { startReceiver } from "./otlp-receiver.ts";
import { installedAbove } from "../support/installed-above.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

async function start(...[args, options]: Parameters<typeof startTruewire>): Promise<RunningTruewire> {
  const running = await startTruewire(args, options);
  closeAfterTest(() => running.stop("SIGKILL"));
  return running;
}

async function upstream(): Promise<string> {
  const server = await startScripted((response, body) => say(response, body, "Hi"));
  closeAfterTest(server.close);
  return server.url;
}

async function ask({ url }: RunningTruewire, model: string): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, chat("hi", { model }));
  expect(response.status).toBe(200);
  await response.text();
}

const isAbove = installedAbove("@opentelemetry/sdk-trace-node");

describe("truewire serve, with a collector", () => {
  test("sends the spans of a local model's phases, which follow one another, and of attempts", async () => {
    const receiver = await startReceiver();
    closeAfterTest(() => receiver.close());
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_RESOURCE_ATTRIBUTES: "team=search" };
    const running = await start(["models/demo/demo.gguf", await upstream()], { env });
    await ask(running, "demo");
    await ask(running, "m");
    expect(await running.stop()).toBe(0);

    expect(receiver.resource()).toMatchObject({ "service.name": "truewire", team: "search" });
    const operation = receiver.spans.find(({ name }) => name === "chat demo");
    const phases = ["template", "queue", "prefill", "generation"].map((name) => {
      const found = receiver.spans.filter((span) => span.name === name);
      expect(found, name).toHaveLength(1);
      expect(found[0]?.parentSpanId).toBe(operation?.spanId);
      return { begins: Number(found[0]?.startTimeUnixNano), ends: Number(found[0]?.endTimeUnixNano) };
    });
    for (const [at, { begins, ends }] of phases.entries()) {
      expect(ends).toBeGreaterThanOrEqual(begins);
      // Nanoseconds since 1970 are more than a number holds exactly.
      const next = phases[at + 1];
      if (next) expect(Math.abs(next.begins - ends)).toBeLessThan(2000);
    }
    expect(operation?.attributes["gen_ai.usage.output_tokens"]).toBeGreaterThan(0);
    const attempt = receiver.spans.find(({ name }) => name === "attempt");
    const parent = receiver.spans.find(({ spanId }) => spanId === attempt?.parentSpanId);
    expect(parent?.name).toBe("chat m");
    expect(attempt?.kind).toBe(3);
    const finished = (): string | undefined =>
      running
        .stderr()
        .split("\n")
        .find((text) => text.includes('"model":"demo"') && text.includes('"msg":"finished"'));
    await expect.poll(finished).toBeDefined();
    const line = finished() ?? "";
    const logged = JSON.parse(line) as Record<string, unknown>;
    expect(logged).toMatchObject({ api: "chat", cachedTokens: 0, trace: operation?.traceId });
    for (const name of ["queueMs", "firstMs", "promptTokens", "completionTokens"])
      expect(logged[name]).toBeTypeOf("number");
  });

  test("answers as ever when the collector is gone, and stops in time", async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
    const running = await start([await upstream()], { env });
    await ask(running, "m");
    expect(await running.stop()).toBe(0);
  });

  test.skipIf(isAbove)("says in one sentence which packages are missing", async () => {
    // The build, among its dependencies without the optional ones.
    const folder = mkdtempSync(join(tmpdir(), "truewire-peers-"));
    closeAfterTest(() => rmSync(folder, { recursive: true }));
    cpSync(dirname(dirname(builtMain)), join(folder, "dist"), { recursive: true });
    const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
    for (const name of Object.keys(manifest.dependencies)) {
      const link = join(folder, "node_modules", name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(resolve("node_modules", name), link, "junction");
    }
    cpSync("package.json", join(folder, "package.json"));
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
    const running = await start([await upstream()], { env, main: join(folder, "dist/cli/main.js") });
    await ask(running, "m");
    const lines = (): string[] =>
      running
        .stderr()
        .split("\n")
        .filter((line) => line.includes("OTEL_EXPORTER_OTLP_ENDPOINT"));
    await expect.poll(lines).toHaveLength(1);
    expect(lines()[0]).toContain(
      "no traces are sent: npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http",
    );
  });
});

describe("--log-format", () => {
  test("json is what is written to a file; pretty is for people, without colours where there is no terminal", async () => {
    const url = await upstream();
    const json = await start([url]);
    const pretty = await start(["--log-format", "pretty", url]);
    for (const running of [json, pretty]) {
      await ask(running, "m");
      await until(() => running.stderr().includes("finished"), "its line is there");
    }
    expect(JSON.parse(json.stderr())).toMatchObject({ msg: "finished", model: "m", status: 200 });
    expect(pretty.stderr()).toMatch(/^\d\d:\d\d:\d\d finished POST \/v1\/chat\/completions req=\w+ api=chat model=m /);
    expect(pretty.stderr()).not.toContain("firstMs");
    // oxlint-disable-next-line no-control-regex -- colours are control characters
    expect(pretty.stderr()).not.toMatch(/\u001b/);
  });

  test("of another name is refused", async () => {
    await expect(startTruewire(["--log-format", "xml", "http://127.0.0.1:9/v1"])).rejects.toThrow(
      "--log-format xml: expected json or pretty",
    );
  });
});
