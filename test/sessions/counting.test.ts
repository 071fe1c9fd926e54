import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { startAnthropic } from "../doubles/anthropic.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

/*
 * A conversation that has changed its server was counted with the signatures of the first one, so Claude Code, which counts before it compacts,
 * got "Invalid `signature` in `thinking` block".
 */

const user = { role: "user", content: "Read it." };
const tools = [{ name: "read", description: "Reads a file.", input_schema: { type: "object", properties: {} } }];

/** Two accounts, and a session that has begun with the first. */
async function begun() {
  const doubles = await Promise.all(
    ["one", "two"].map((account) =>
      startAnthropic({
        accounts: { [account]: account },
        answer: () => ({ thinking: "I must.", calls: [{ name: "read", input: {} }] }),
      }),
    ),
  );
  for (const double of doubles) closeAfterTest(() => double.close());
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    models: ["one", "two"].map((name, at) => ({
      kind: "upstream" as const,
      name,
      api: "messages" as const,
      url: doubles[at]?.url ?? "",
      key: name,
      models: { [name]: "claude-opus-4-6" },
    })),
  });
  closeAfterTest(() => server.close(0));
  const post = async (path: string, body: object): Promise<{ status: number; json: Record<string, unknown> }> => {
    const response = await fetch(`${server.url}/v1/messages${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ thinking: { type: "adaptive" }, tools, ...body }),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  };
  const { json } = await post("", { model: "one", max_tokens: 4096, messages: [user] });
  const content = json["content"] as { id: string; signature?: string }[];
  const result = { type: "tool_result", tool_use_id: content[1]?.id, content: "ok" };
  const messages = [user, { role: "assistant", content }, { role: "user", content: [result] }];
  return { doubles, post, messages, signature: content[0]?.signature ?? "" };
}

test.each([
  ["of this server", (signature: string) => signature],
  ["of an unknown maker", () => "SW52ZW50ZWQ="],
])("a signature %s is counted where it is valid, and left out elsewhere", async (kind, value) => {
  const { doubles, post, messages, signature } = await begun();
  const sent = JSON.parse(JSON.stringify(messages).replace(signature, value(signature))) as unknown[];
  for (const model of ["one", "two"]) {
    const { status, json } = await post("/count_tokens", { model, messages: sent });
    expect([status, json]).toEqual([200, { input_tokens: expect.any(Number) as unknown }]);
  }
  const has = doubles.map(({ counts }) => JSON.stringify(counts.at(-1)).includes('"signature"'));
  expect(has).toEqual([kind === "of this server", false]);
});
