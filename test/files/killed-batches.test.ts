import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** A program that writes down which line it was asked, before and after. */
const program = (log: string): string => `
import { appendFileSync } from "node:fs";
export default async ({ messages }) => {
  const text = String(messages.at(-1).content);
  await new Promise((resolve) => setTimeout(resolve, 5));
  appendFileSync(${JSON.stringify(log)}, text + "\\n");
  return "echo " + text;
};`;

const total = 300;

describe.skipIf(process.platform !== "linux")("a batch whose server is killed", () => {
  let folder = "";
  const servers: RunningTruewire[] = [];
  let redis: ChildProcess | undefined;
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop("SIGKILL")));
    redis?.kill("SIGKILL");
    redis = undefined;
    rmSync(folder, { recursive: true, force: true });
  });

  async function started(store: string): Promise<RunningTruewire> {
    const server = await startTruewire([join(folder, "program.mjs"), "--store", store]);
    servers.push(server);
    return server;
  }

  const clientOf = ({ url }: RunningTruewire): OpenAI =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });

  function prepare(): string {
    folder = mkdtempSync(join(tmpdir(), "truewire-batch-"));
    const log = join(folder, "asked");
    writeFileSync(log, "");
    writeFileSync(join(folder, "program.mjs"), program(log));
    return log;
  }

  async function created(client: OpenAI): Promise<string> {
    const lines = Array.from({ length: total }, (_, at) =>
      JSON.stringify({
        custom_id: `line-${at}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model: "program", messages: [{ role: "user", content: `line-${at}` }] },
      }),
    );
    const file = await client.files.create({
      file: await toFile(Buffer.from(lines.join("\n")), "a.jsonl"),
      purpose: "batch",
    });
    return (
      await client.batches.create({
        input_file_id: file.id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      })
    ).id;
  }

  async function resultsOf(client: OpenAI, id: string): Promise<string[]> {
    await expect.poll(async () => (await client.batches.retrieve(id)).status).toBe("completed");
    const batch = await client.batches.retrieve(id);
    expect(batch.request_counts).toEqual({ total, completed: total, failed: 0 });
    const text = await (await client.files.content(batch.output_file_id ?? "")).text();
    return text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id);
  }

  const asked = (log: string): string[] => readFileSync(log, "utf8").trimEnd().split("\n");
  const all = Array.from({ length: total }, (_, at) => `line-${at}`).toSorted();

  test("is finished by the next one: no line is lost, and none is in the results twice", async () => {
    const log = prepare();
    const store = join(folder, "store");
    const first = await started(store);
    const id = await created(clientOf(first));
    await expect.poll(() => asked(log).length).toBeGreaterThan(total / 4);
    await first.stop("SIGKILL");
    const before = asked(log).length;
    expect(before).toBeLessThan(total);
    const client = clientOf(await started(store));
    expect((await resultsOf(client, id)).toSorted()).toEqual(all);
    // At most the lines that ran when the server was killed ran again.
    expect(asked(log).length - total).toBeLessThanOrEqual(8);
  });

  test.skipIf(redisCommand() === undefined)(
    "is finished by another instance over the same Redis, and each line ran once at one of three instances",
    async () => {
      const log = prepare();
      const port = await freePort();
      redis = await startRedis(port);
      const instances = await Promise.all([0, 1, 2].map(() => started(`redis://127.0.0.1:${port}`)));
      const [first, second] = instances;
      if (!first || !second) throw new Error("no instances");
      // All three look at the same batch, and one of them runs it.
      const alone = await created(clientOf(second));
      expect((await resultsOf(clientOf(first), alone)).toSorted()).toEqual(all);
      expect(asked(log).toSorted()).toEqual(all);

      writeFileSync(log, "");
      const id = await created(clientOf(first));
      await expect.poll(() => asked(log).length).toBeGreaterThan(total / 4);
      await first.stop("SIGKILL");
      expect((await resultsOf(clientOf(second), id)).toSorted()).toEqual(all);
      expect(asked(log).length - total).toBeLessThanOrEqual(8);
    },
  );

  test("is given back by a server that stops, and its torn last result is not counted", async () => {
    const log = prepare();
    const store = join(folder, "store");
    const first = await started(store);
    const id = await created(clientOf(first));
    await expect.poll(() => asked(log).length).toBeGreaterThan(total / 4);
    expect(await first.stop()).toBe(0);
    // The results are the only file of the store that has lines of a batch.
    const results = spawn("grep", ["-rl", "batch_req_", store]);
    const files = (await results.stdout.toArray()).join("").trim().split("\n");
    expect(files).toHaveLength(1);
    appendFileSync(files[0] ?? "", `{"id":"batch_req_torn","custom_id":"line-`);
    const client = clientOf(await started(store));
    expect((await resultsOf(client, id)).toSorted()).toEqual(all);
  });
});
