import { afterEach, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { runCheck } from "../../src/judge/check/probe/run-check.ts";
import { startGateway } from "../upstream/gateway.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { waitMs } from "../support/hang.ts";

// `truewire check` over servers that diagnose their cache, and over one that always says that nothing has changed.

const only = ["messages/diagnostics", "responses/diagnostics"];
const closing: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

async function found({ url }: Pick<TruewireServer, "url">, model: string) {
  const { judged } = await runCheck({ url: `${url}/v1`, model, only, timeout: waitMs, concurrency: 1 });
  return {
    findings: judged.flatMap(({ findings }) => findings.map((finding) => `${finding.rule}: ${finding.found}`)),
    shown: judged.filter(({ shown }) => shown.includes("cache/diagnosed")).map(({ id }) => id),
  };
}

test("our own server diagnoses both APIs", async () => {
  const engine = new ScriptedEngine(() => answer(["Hi"], { usage: { promptTokens: 2000, completionTokens: 1 } }));
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
  closing.push(() => server.close(0));
  expect(await found(server, "scripted")).toEqual({ findings: [], shown: only });
});

test("a server whose answers never have a reason is reported", async () => {
  const message = {
    model: "m",
    id: "msg_01",
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 2000, output_tokens: 1 },
    diagnostics: null,
  };
  const upstream = await startScripted((reply) => {
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify(message));
  });
  const gateway = await startGateway(upstream.url, { api: "messages" });
  closing.push(async () => {
    await gateway.close(0);
    await upstream.close();
  });
  const { findings, shown } = await found(gateway, "m");
  expect(shown).toContain("messages/diagnostics");
  expect(findings).toContain("cache/diagnosed: none for a changed system prompt, not system_changed");
});
