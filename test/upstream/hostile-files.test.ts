import { readdirSync, readFileSync } from "node:fs";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { keyOf, withKey } from "../keys/support.ts";
import { repeatedSharedText, slowPdf, twiceFlatePdf, zip64Docx } from "../support/hostile-files.ts";
import { docx, pdf } from "../support/office-files.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { otherServers } from "../support/other-servers.ts";

const [alice, bob] = [keyOf("alice"), keyOf("bob")];
const streams = 20;

/** A server with two keys before an upstream that takes no files. The upstream's streams end when the test says so. */
describe("files of one client", () => {
  let folder: string;
  let server: RunningTruewire;
  const open = new Set<ServerResponse>();
  const texts: string[] = [];
  const listening = otherServers();
  const upstream = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const asked = JSON.parse(body) as { stream?: boolean; messages: { content: unknown }[] };
      texts.push(JSON.stringify(asked.messages));
      const envelope = { id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m" };
      if (asked.stream === true) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(frame({ content: "begun" }));
        open.add(response);
        return;
      }
      const message = { role: "assistant", content: "read" };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...envelope, choices: [{ index: 0, message, finish_reason: "stop" }] }));
    });
  });
  const frame = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

  beforeAll(async () => {
    const url = `${await listening(upstream)}/v1`;
    folder = mkdtempSync(join(tmpdir(), "truewire-files-"));
    writeFileSync(
      join(folder, "truewire.yaml"),
      stringify({
        port: 0,
        logLevel: "silent",
        keys: [alice.entry, bob.entry],
        models: [{ kind: "upstream", name: "m", url, models: { m: "m" }, requests: { files: false } }],
      }),
    );
    server = await startTruewire(["--config", join(folder, "truewire.yaml")], { env: { SECRET_OF_THE_SERVER: "1" } });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const chat = (key: string, content: unknown, more: object = {}): Promise<Response> =>
    fetch(
      `${server.url}/v1/chat/completions`,
      withKey(key, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content }], ...more }),
      }),
    );
  const withFile = (bytes: Buffer, filename: string): unknown => [
    { type: "text", text: "What is in it?" },
    { type: "file", file: { filename, file_data: `data:application/octet-stream;base64,${bytes.toString("base64")}` } },
  ];
  const errorOf = async (response: Response): Promise<{ status: number; message: string; param: string | null }> => {
    const { error } = (await response.json()) as { error: { message: string; param: string | null } };
    return { status: response.status, ...error };
  };

  // A spreadsheet of 1,532 bytes ended the server and cut 20 of 20 streams: V8 ends the whole process for one large allocation of a worker
  // thread. The test of the limit used a file that grew slowly.
  test("20 streams of others go on while files are read that take all memory", async () => {
    const others = await Promise.all(Array.from({ length: streams }, () => chat(bob.key, "Count", { stream: true })));
    await until(() => open.size === streams, "all streams are open");
    const pid = server.process.pid;
    const sheet = await chat(alice.key, withFile(repeatedSharedText(), "a.xlsx"));
    expect(sheet.status).toBe(200);
    expect(texts.at(-1)).toContain("[The rest of the file is left out.]");
    const bomb = await errorOf(await chat(alice.key, withFile(twiceFlatePdf(10_240), "a.pdf")));
    expect(bomb).toMatchObject({ status: 400, param: "messages[0].content[1]" });
    expect(bomb.message).toMatch(
      /"a\.pdf" cannot be read as text, .*: it (?:needs more than 1024 MiB|needs too much memory|took longer than 30 seconds|has no text)/,
    );
    const word = await chat(alice.key, withFile(zip64Docx(400), "a.docx"));
    expect(word.status).toBe(200);
    expect(texts.at(-1)).toContain("Hello");
    // The next file gets another process.
    expect((await chat(alice.key, withFile(docx("Tom"), "b.docx"))).status).toBe(200);
    expect(texts.at(-1)).toContain("Tom");
    for (const response of open) {
      response.write(frame({ content: " ended" }));
      response.end(`${frame({}, "stop")}data: [DONE]\n\n`);
    }
    for (const response of others) {
      const text = await response.text();
      expect(text).toContain(" ended");
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    }
    expect(server.process.pid).toBe(pid);
    expect(server.process.exitCode).toBe(null);
  });

  // All files passed one thread, first in, first out: another key's page waited 89 seconds for six slow PDFs. No test had two keys with files.
  test("slow files of one key do not delay a small one of another key", async () => {
    const order: string[] = [];
    const slow = slowPdf(150_000);
    const ofAlice = Array.from({ length: 6 }, () =>
      chat(alice.key, withFile(slow, "slow.pdf")).then((response) => {
        order.push("slow");
        return response.status;
      }),
    );
    const ofBob = chat(bob.key, withFile(pdf("Hello"), "page.pdf")).then((response) => {
      order.push("page");
      return response.status;
    });
    expect(await ofBob).toBe(200);
    // At most the one that was running before, and the one after it: a process starts as slowly as a file is read on a busy machine.
    expect(order.indexOf("page")).toBeLessThan(4);
    expect(new Set(await Promise.all(ofAlice))).toEqual(new Set([400]));
    expect(order).toHaveLength(7);
  });

  test.skipIf(process.platform !== "linux")(
    "the processes that read files have nothing of the server's environment",
    async () => {
      expect((await chat(alice.key, withFile(pdf("Hello"), "page.pdf"))).status).toBe(200);
      const readers = readersOf(server.process.pid ?? 0);
      expect(readers.length).toBeGreaterThan(0);
      for (const pid of readers) {
        const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
        expect(environment).not.toContain("SECRET_OF_THE_SERVER");
        expect(environment).not.toContain("HOME=");
        // 1 GiB of memory that the process may write to.
        // 1 GiB, and what V8 reserves for two isolates: 40 MiB in Node 20, 1.1 GiB in Node 24, which did not start without it.
        const limit = Number(/^Max data size +(\d+) /m.exec(readFileSync(`/proc/${pid}/limits`, "latin1"))?.[1]);
        expect(limit).toBeGreaterThanOrEqual(2 ** 30);
        expect(limit).toBeLessThan(3 * 2 ** 30);
      }
    },
  );
});

/** The processes that read files, children of the server. */
function readersOf(server: number): readonly string[] {
  const linesOf = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "latin1");
    } catch {
      return "";
    }
  };
  const parentOf = (pid: string): string => /^PPid:\s+(\d+)/m.exec(linesOf(pid, "status"))?.[1] ?? "0";
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && linesOf(pid, "cmdline").includes("limited-main.js"))
    .filter((pid) => parentOf(pid) === String(server));
}
