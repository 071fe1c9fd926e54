import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { adaptationNames } from "../../src/wire/apis/adapt/adaptation-names.ts";
import { knownServer } from "../../src/wire/apis/adapt/known-servers.ts";
import type { ServerProfile } from "../../src/wire/apis/adapt/server-profile.ts";
import { writeChatRequest } from "../../src/wire/apis/chat/send.ts";
import { messagesPort } from "../../src/wire/apis/messages/port.ts";
import { responsesPort } from "../../src/wire/apis/responses/port.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { deepseek } from "../doubles/deepseek.ts";
import { gemini } from "../doubles/gemini.ts";
import { groq } from "../doubles/groq.ts";
import { llamaServer } from "../doubles/llama-server.ts";
import { mistral } from "../doubles/mistral.ts";
import { ollama } from "../doubles/ollama.ts";
import { hasTemplate, qwen } from "../doubles/qwen.ts";
import { objectOf } from "../doubles/chat-server.ts";
import { strings } from "../doubles/strings.ts";
import type { Json, ChatServer } from "../doubles/chat-server.ts";
import { vllm } from "../doubles/vllm.ts";

/* The recorded requests of agents, sent to each double without and with adaptations: the table in docs/upstreams.md. */

const folder = new URL("../../../shared/client-captures/", import.meta.url);
const agents = [
  { port: responsesPort, files: ["codex-0.169.0.jsonl"] },
  {
    port: messagesPort,
    files: ["claude-code-2.1.233-recorded.jsonl", "claude-code-2.1.330.jsonl", "claude-code-2.1.330-max-tokens.jsonl"],
  },
];
const isComplete = hasTemplate && agents.every(({ files }) => files.every((file) => existsSync(new URL(file, folder))));
if (!isComplete) console.log("skipped: no ../shared/client-captures and chat-templates to compare the table with");

const servers = (): readonly { readonly server: ChatServer; readonly url?: string }[] => [
  { server: vllm },
  { server: llamaServer() },
  { server: llamaServer({ isOlder: true }) },
  { server: qwen() },
  { server: ollama() },
  { server: ollama({ reasons: true }) },
  { server: deepseek },
  { server: mistral },
  { server: groq, url: "https://api.groq.com/openai/v1" },
  { server: gemini(), url: "https://generativelanguage.googleapis.com/v1beta/openai" },
  { server: strings },
];

const off: ServerProfile = { adapt: Object.fromEntries(adaptationNames.map((name) => [name, false])) };

test.skipIf(!isComplete)("the table of agents over chat servers is what the doubles answer", () => {
  const rows = servers().map(({ server, url = "" }) => {
    const known = knownServer(url, { ownedBy: server.owner, created: 0 })?.profile ?? {};
    const cells = agents.map(({ port, files }) => {
      const bodies = files.flatMap((file) =>
        readFileSync(new URL(file, folder), "utf8")
          .split("\n")
          .filter(Boolean)
          .map((line) => (JSON.parse(line) as { readonly body: Json }).body),
      );
      const refusals = (profile: ServerProfile): readonly string[] =>
        bodies.flatMap((body) => {
          const { request } = runSync(port.readRequest({ ...body, model: "m" }, "r", { forwards: true }));
          const sent = JSON.parse(JSON.stringify(writeChatRequest(request, profile))) as Json;
          const refusal = server.refusal(sent);
          return refusal === undefined ? [] : [reasonOf(refusal.body)];
        });
      const [before, after] = [refusals(off), refusals(known)];
      expect([server.name, after]).toEqual([server.name, []]);
      const served = (list: readonly string[]): string => `${bodies.length - list.length} of ${bodies.length}`;
      return { text: `${served(before)} | ${served(after)}`, reason: before[0] };
    });
    const reason = cells.map((cell) => cell.reason).find((text) => text !== undefined);
    return `| ${server.name} | ${cells.map(({ text }) => text).join(" | ")} | ${reason === undefined ? "" : `\`${reason}\``} |`;
  });
  const docs = readFileSync(new URL("../../docs/upstreams.md", import.meta.url), "utf8");
  expect(
    docs
      .split("\n")
      .filter((line) => rows.some((row) => row === line))
      .join("\n"),
  ).toBe(rows.join("\n"));
});

/** The beginning of an error's message, on one line. */
function reasonOf(body: unknown): string {
  const { message } = objectOf(objectOf(body)["error"] ?? body);
  const text = typeof message === "string" ? message : JSON.stringify(message ?? body);
  const plain = text.replaceAll(/[\s`|]+/g, " ").trim();
  return plain.length > 90 ? `${plain.slice(0, 90)}…` : plain;
}
