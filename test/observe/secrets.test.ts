import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { chat, json } from "../support/transports.ts";
import { bodyOf, startScripted, streamOf } from "../upstream/scripted-server.ts";
import { startReceiver } from "./otlp-receiver.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

// What a client writes, what a model answers and what opens doors stands nowhere but where it belongs.

/** Long enough to be a text that somebody meant to keep. */
const prompt = "MARKER-PROMPT My bank account is 12-3456-7890 and nobody may know it.";
const said = "MARKER-ANSWER Your balance is four million and three crowns.";
const keys = {
  client: "sk-MARKER-CLIENT-0123456789",
  upstream: "sk-MARKER-UPSTREAM-0123456789",
  header: "MARKER-HEADER-0123456789",
  member: "MARKER-MEMBER-0123456789",
  numbers: "MARKER-NUMBERS-0123456789",
  password: "MARKER-PASSWORD-0123456789",
};
const basic = Buffer.from(`someone:${keys.password}`).toString("base64");

/** A server that says all that it knows: it repeats the request in its errors, and answers with the keys that it got. */
async function gossip(): Promise<string> {
  const server = await startScripted((response, body) => {
    const { messages } = body as { messages: readonly { content: string }[] };
    const asked = messages.at(-1)?.content ?? "";
    const known = `${JSON.stringify(body)} ${keys.upstream} ${keys.header} ${basic} ${keys.password}`;
    if (asked.includes("fail")) {
      const [input] = messages;
      response.writeHead(asked.includes("refuse") ? 400 : 500, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `Input was: ${asked} ${JSON.stringify(input)} ${known}` } }));
    } else if (body["stream"] === true) response.end(streamOf(`${said} ${known}`));
    else response.writeHead(200, { "content-type": "application/json" }).end(bodyOf(`${said} ${known}`));
  });
  closeAfterTest(server.close);
  return server.url;
}

function configuration(url: string): string {
  return `
port: 0
apiKey: ${keys.client}
metricsKey: ${keys.numbers}
logLevel: debug
models:
  - kind: upstream
    url: ${url}
    key: ${keys.upstream}
    retries: 1
    headers:
      X-Api-Token: ${keys.header}
      Proxy-Authorization: Basic ${basic}
    requests: { add: { api_key: ${keys.member} } }
    models: [m]
`;
}

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "truewire-secrets-"));
  closeAfterTest(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "truewire.yaml");
  writeFileSync(file, text);
  return file;
}

function expectNoSecret(text: string, where: string): void {
  const found = [...Object.values(keys), basic].filter((secret) => text.includes(secret));
  expect(found, where).toEqual([]);
}

function expectNoText(text: string, where: string): void {
  for (const marker of ["MARKER-PROMPT", "MARKER-ANSWER", "12-3456-7890", "four million"])
    expect(text.includes(marker), `${where}: ${marker}`).toBe(false);
}

describe("prompts, answers and keys", () => {
  test("are in no metrics, no trace, no log, no health, and keys in no error", async () => {
    const receiver = await startReceiver();
    closeAfterTest(() => receiver.close());
    const file = fileWith(configuration(await gossip()));
    const running = await startTruewire(["--config", file], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
    closeAfterTest(() => running.stop("SIGKILL"));
    const post = async (path: string, init: RequestInit, key = keys.client): Promise<string> => {
      const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${key}` };
      return (await fetch(`${running.url}${path}`, { ...init, headers })).text();
    };
    const asked = (text: string, more = {}): RequestInit => chat(text, { model: "m", ...more });
    const answers = [
      await post("/v1/chat/completions", asked(prompt)),
      await post("/v1/chat/completions", asked(prompt, { stream: true })),
      await post("/v1/chat/completions", asked(`${prompt} fail`)),
      await post("/v1/chat/completions", asked(`${prompt} fail refuse`, { stream: true })),
      await post("/v1/responses", json({ model: "m", input: prompt })),
      await post("/v1/responses", json({ model: "m", input: `${prompt} fail` })),
      await post("/v1/messages", json({ model: "m", max_tokens: 9, messages: [{ role: "user", content: prompt }] })),
    ];
    const refused = [
      await post("/v1/chat/completions", asked(prompt, { messages: [{ role: prompt, content: prompt }] })),
      await post("/v1/chat/completions", asked(prompt, { tool_choice: prompt, temperature: prompt })),
      await post("/v1/chat/completions", { method: "POST", body: `{"messages": "${prompt}" ${prompt}` }),
      await post("/v1/chat/completions", asked("hi"), `${keys.client}-not`),
      await post(`/v1/nowhere?key=${keys.client}`, asked(prompt)),
    ];
    const bearer = { headers: { authorization: `Bearer ${keys.client}` } };
    const health = await (await fetch(`${running.url}/health`, bearer)).text();
    const forNumbers = { headers: { authorization: `Bearer ${keys.numbers}` } };
    const metrics = await (await fetch(`${running.url}/metrics`, forNumbers)).text();
    expect(await running.stop()).toBe(0);

    // Each way of asking was answered as it was meant to be.
    expect(answers.filter((text) => text.includes("MARKER-ANSWER"))).toHaveLength(4);
    expect(answers.filter((text) => text.includes("Input was"))).toHaveLength(3);
    expect(metrics).toContain('outcome="finished"');
    expect(receiver.spans.length).toBeGreaterThan(10);
    await until(() => running.stderr().includes("tried again"), "the log is there");

    const everywhere = { health, metrics, traces: receiver.text(), log: running.stderr(), stdout: running.stdout() };
    for (const [where, text] of Object.entries(everywhere)) {
      expectNoSecret(text, where);
      expectNoText(text, where);
    }
    // What a model says is not searched: a filter would hold its text back.
    const errors = [...answers.filter((text) => !text.includes("MARKER-ANSWER")), ...refused];
    for (const [at, text] of errors.entries()) expectNoSecret(text, `error ${at}`);
  });

  test("are in nothing that `truewire config` prints of a file with a mistake", async () => {
    const file = fileWith(`${configuration("http://127.0.0.1:9/v1")}colour: blue\n`);
    const { code, stdout, stderr } = await runTruewire(["config", "check", file]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("there is no such setting");
    expectNoSecret(stdout + stderr, "the output");
    const wrong = fileWith(configuration("http://127.0.0.1:9/v1").replace("retries: 1", `retries: ${keys.upstream}`));
    const second = await runTruewire(["config", "check", wrong]);
    expect(second.code).not.toBe(0);
    expectNoSecret(second.stdout + second.stderr, "the output");
  });
});
