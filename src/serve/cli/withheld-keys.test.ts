import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { AdminClient } from "./admin-client.ts";
import { launch } from "./launch-action.ts";

// `truewire launch` sent TRUEWIRE_API_KEY, and `truewire models` TRUEWIRE_ADMIN_KEY, to whatever program listened on port 8080. Tests always
// named the server.

const key = "key-of-this-user-0123456789";
afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

interface Sent {
  readonly url: string;
  readonly key: string | undefined;
}

/** Answers every request with this status, and notes its key. */
function answerAll(status: number, body: unknown): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal("fetch", async (url: string, init: { headers: Record<string, string> }) => {
    sent.push({ url, key: init.headers["authorization"] });
    return Response.json(body, { status });
  });
  for (const name of ["TRUEWIRE_API_KEY", "TRUEWIRE_ADMIN_KEY"]) vi.stubEnv(name, key);
  vi.stubEnv("TRUEWIRE_URL", undefined);
  return sent;
}

const usual = "http://127.0.0.1:8080";
const models = { models: [{ slug: "m", input_modalities: ["text"] }] };

test("launch asks the server on the usual port without the key, and says how to send it", async () => {
  const sent = answerAll(401, {});
  await expect(launch("claude", [], [], { print: true })).rejects.toThrow(
    `${usual} requires a key. A key is sent only to a server that you name: --url ${usual}, or TRUEWIRE_URL=${usual}.`,
  );
  await expect(launch("claude", [], [], { print: true, apiKey: key })).rejects.toThrow("requires a key.");
  expect(sent).toEqual([1, 2].map(() => ({ url: `${usual}/v1/models?client_version=0`, key: undefined })));
});

test("an agent gets no key for a server on the usual port that asks for none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-launch-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  vi.stubEnv("XDG_CACHE_HOME", folder);
  const sent = answerAll(200, models);
  const print = vi.spyOn(console, "log").mockImplementation(() => {});
  await launch("claude", [], [], { print: true });
  expect(sent.map((one) => one.key)).toEqual([undefined]);
  expect(print.mock.lastCall?.[0]).toContain("ANTHROPIC_AUTH_TOKEN=none");
  await launch("claude", [], [], { print: true, url: "http://127.0.0.1:9" });
  expect(sent.at(-1)).toEqual({ url: "http://127.0.0.1:9/v1/models?client_version=0", key: `Bearer ${key}` });
  expect(print.mock.lastCall?.[0]).toContain("TRUEWIRE_API_KEY");
});

test("the admin key goes only to a server that is named", async () => {
  const sent = answerAll(401, { error: { message: "no key" } });
  await expect(new AdminClient({}).list()).rejects.toThrow(
    `${usual} requires its admin key. A key is sent only to a server that you name: --url ${usual}, or TRUEWIRE_URL=${usual}.`,
  );
  await expect(new AdminClient({ url: usual }).list()).rejects.toThrow("no key");
  vi.stubEnv("TRUEWIRE_URL", usual);
  await expect(new AdminClient({}).list()).rejects.toThrow("no key");
  expect(sent.map((one) => one.key)).toEqual([undefined, `Bearer ${key}`, `Bearer ${key}`]);
});
