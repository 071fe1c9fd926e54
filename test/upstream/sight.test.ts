import { expect, test } from "vitest";
import { openTransport } from "../../src/engines/upstream/undici-transport.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import { listenInTest } from "../support/close-after-test.ts";

/** What a server tells that answers so; and the paths that it was asked for. */
async function listed(
  answer: (path: string, body: string) => unknown,
): Promise<{ readonly sees: Readonly<Record<string, boolean | undefined>>; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const { url: root } = await listenInTest((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      asked.push(`${request.method} ${request.url}`);
      const value = answer(request.url ?? "", body);
      response.statusCode = value === undefined ? 404 : 200;
      response.end(JSON.stringify(value ?? {}));
    });
  });
  const engine = await openUpstreamEngine({ urls: [`${root}/v1`], name: "test", api: "chat" }, openTransport);
  const models = engine.models();
  await engine.close(0);
  return { sees: Object.fromEntries(models.map(({ id, takesImages: sees }) => [id, sees])), asked };
}

const list = (owner: string, ...ids: readonly string[]): object => ({
  data: ids.map((id) => ({ id, owned_by: owner })),
});

test("OpenRouter's list tells it, and nothing more is asked", async () => {
  const data = [{ id: "a", architecture: { input_modalities: ["text", "image"] } }, { id: "b" }];
  const { sees, asked } = await listed((path) => (path === "/v1/models" ? { data } : undefined));
  expect(sees).toEqual({ a: true, b: undefined });
  expect(asked).toEqual(["GET /v1/models"]);
});

test("LM Studio's own list tells it", async () => {
  const own = {
    data: [
      { id: "a", type: "vlm" },
      { id: "b", type: "llm" },
      { id: "c", type: "embeddings" },
    ],
  };
  const { sees } = await listed((path) =>
    path === "/v1/models" ? list("organization_owner", "a", "b", "c") : path === "/api/v0/models" ? own : undefined,
  );
  expect(sees).toEqual({ a: true, b: false, c: undefined });
});

test("Ollama shows it of each model", async () => {
  const { sees, asked } = await listed((path, body) => {
    if (path === "/v1/models") return list("library", "a", "b", "old");
    const { model } = JSON.parse(body) as { model: string };
    return { a: { capabilities: ["completion", "vision"] }, b: { capabilities: ["completion"] }, old: {} }[model];
  });
  expect(sees).toEqual({ a: true, b: false, old: undefined });
  expect(asked.filter((line) => line === "POST /api/show")).toHaveLength(3);
});

test("where a server has no API of its own, it stays unknown", async () => {
  for (const owner of ["library", "organization_owner", "vllm"]) {
    const { sees } = await listed((path) => (path === "/v1/models" ? list(owner, "a") : undefined));
    expect(sees).toEqual({ a: undefined });
  }
});
