import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, get, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describePage, talker } from "../support/describe-page.ts";
import { otherServers } from "../support/other-servers.ts";
import { ask, lastAnswer, modelsOf, openPage } from "../support/open-page.ts";
import { builtMain, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** What browsers ask for when a person opens an address. */
const asBrowser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/** The page as it was built. */
const builtPage = join(dirname(builtMain), "../page");
const isBuilt = existsSync(builtPage);
if (!isBuilt) console.log(`skipped: ${builtPage} is not there to be weighed: npm run build`);

test.skipIf(!isBuilt)("compressed, the page loads less than 110 kB at first, and the rest when it is needed", () => {
  const read = (name: string): string => readFileSync(join(builtPage, name), "utf8");
  const sizes = Object.fromEntries(readdirSync(builtPage).map((name) => [name, gzipSync(read(name)).length]));
  const first = new Set(["index.html", "page.css", "icon.svg", "parameters.json", "page.js"]);
  // A set that grows is iterated to its new end. `import("…")` loads later.
  for (const name of first)
    for (const [, imported = ""] of read(name).matchAll(/(?:from|import)\s?"\.\/([\w-]+\.js)"/g)) first.add(imported);
  const sum = (names: Iterable<string>): number => [...names].reduce((all, name) => all + (sizes[name] ?? 0), 0);
  expect(sum(first), JSON.stringify([...first])).toBeLessThan(110_000);
  // Loaded with what is judged first, with a request that the server did not read, with the first answer and code, and with views.
  for (const [name, most] of [
    ["judging-worker.js", 155_000],
    ["read-body.js", 82_000],
    ["markdown-painter.js", 50_000],
    ["highlighting-worker.js", 45_000],
    ["formula-view.js", 70_000],
    ["import-worker.js", 3000],
    ["changes-view.js", 12_000],
    ["overview-view.js", 5_000],
    ["compare-view.js", 5_000],
  ] as const)
    expect(sizes[name], name).toBeLessThan(most);
});

describe("the files of the page", () => {
  let server: RunningTruewire;
  beforeAll(async () => {
    server = await startTruewire([talker]);
  });
  afterAll(() => server?.stop());

  test("a browser gets the page at /, any other client the two lines", async () => {
    const page = await fetch(`${server.url}/`, { headers: asBrowser });
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("vary")).toBe("Accept");
    expect(await page.text()).toContain('src="page/page.js"');
    const probe = await fetch(`${server.url}/`);
    expect(probe.headers.get("vary")).toBe("Accept");
    expect(await probe.text()).toBe("Ollama is running");
    for (const accept of ["text/plain", "application/json"]) {
      const text = await fetch(`${server.url}/`, { headers: { accept } });
      expect(text.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      expect(text.headers.get("vary")).toBe("Accept");
      expect(await text.text()).toContain("Base URL for clients");
    }
    const own = await fetch(`${server.url}/`, { headers: { origin: "http://localhost:5173" } });
    expect(own.headers.get("vary")).toBe("Origin, Accept");
    // Below the API's own path, a browser too is told of the API.
    const api = await fetch(`${server.url}/v1`, { headers: asBrowser });
    expect(api.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  });

  test("all it names is there, of its type, and under a policy that lets nothing else in", async () => {
    const html = await (await fetch(`${server.url}/`, { headers: asBrowser })).text();
    const names = [...html.matchAll(/(?:src|href)="(page\/[^"]+)"/g)].map(([, name = ""]) => name);
    expect(names).toEqual(["page/icon.svg", "page/page.css", "page/page.js"]);
    const types: string[] = [];
    for (const name of [...names, "page/parameters.json"]) {
      const file = await fetch(`${server.url}/${name}`);
      expect(file.status).toBe(200);
      types.push(file.headers.get("content-type") ?? "");
      expect(file.headers.get("x-content-type-options")).toBe("nosniff");
      const policy = file.headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'$/);
      expect(policy).not.toContain("unsafe");
    }
    expect(types).toEqual([
      "image/svg+xml",
      "text/css; charset=utf-8",
      "text/javascript; charset=utf-8",
      "application/json",
    ]);
    // No style or script stands in the page itself: the policy would refuse it.
    expect(html).not.toMatch(/<style|style=|<script>|\son\w+=|https?:/);
  });

  test("a browser that has a file is told so", async () => {
    const first = await fetch(`${server.url}/page/page.js`);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await fetch(`${server.url}/page/page.js`, { headers: { "if-none-match": known } });
      expect(again.status).toBe(304);
      expect(again.headers.get("etag")).toBe(etag);
      expect(again.headers.get("content-length")).toBeNull();
      expect(await again.text()).toBe("");
    }
    const other = await fetch(`${server.url}/page/page.js`, { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
    const head = await fetch(`${server.url}/page/page.js`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([
      200,
      first.headers.get("content-length"),
      "",
    ]);
  });

  test("what is not a file of the page is none", async () => {
    for (const name of ["nope.js", "..%2Findex.js", "%2e%2e/cli/main.js", ".tsbuildinfo", "constructor", ""]) {
      const response = await fetch(`${server.url}/page/${name}`);
      expect(response.status, name).toBe(404);
      expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
    }
    expect((await fetch(`${server.url}/page/page.js`, { method: "POST" })).status).toBe(405);
  });

  test("a name that was made to point here gets none of it", async () => {
    for (const path of ["/", "/page/page.js"]) {
      const status = await new Promise((resolve, reject) => {
        const headers = { ...asBrowser, host: "evil.example" };
        get(`${server.url}${path}`, { headers }, (incoming) => {
          incoming.resume();
          resolve(incoming.statusCode);
        }).on("error", reject);
      });
      expect(status).toBe(403);
    }
  });

  // Pages of this machine may call the API; the page itself is nobody's to read: in it, a key is entered.
  test("no other origin is let in by CORS, those that may call the API neither", async () => {
    const origin = "http://localhost:5173";
    const api = await fetch(`${server.url}/v1/models`, { headers: { origin } });
    expect(api.headers.get("access-control-allow-origin")).toBe(origin);
    for (const path of ["/", "/page/page.js"]) {
      const response = await fetch(`${server.url}${path}`, { headers: { ...asBrowser, origin } });
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
      expect(response.headers.get("cross-origin-resource-policy")).toBe("same-origin");
    }
  });
});

const expired = "tw-expired-0123456789";
const folder = mkdtempSync(join(tmpdir(), "truewire-page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A server that knew the key `expired`. */
function withExpiredKey(): Promise<string[]> {
  const file = join(folder, "keys.yaml");
  const hash = createHash("sha256").update(expired).digest("hex");
  writeFileSync(file, `keys: [{ name: carol, hash: "sha256:${hash}", expires: 2020-02-02 }]\n`);
  return Promise.resolve([talker, "--config", file]);
}

describePage("the page of a server with keys", withExpiredKey, (at) => {
  // It said that the server did not know the key, so one looked for a typing error.
  test("says what the server says of a key: that it has expired", async () => {
    const { page, wrong, close } = await at.open();
    await page.getByLabel("API key").fill(expired);
    await page.keyboard.press("Enter");
    await page.locator("dialog", { hasText: "The API key of 'carol' has expired." }).waitFor();
    await expect.poll(() => page.getByLabel("API key").getAttribute("aria-invalid")).toBe("true");
    expect(wrong).toEqual([]);
    await close();
  });
});

describePage("the page in a browser", [talker, "--api-key", "sk-page-0123456789"], (at) => {
  const listening = otherServers();

  test("a key is asked for, kept for this tab alone, and no part of what is copied", async () => {
    const { page, wrong, close } = await at.open();
    const key = page.getByLabel("API key");
    await key.fill("sk-wrong");
    await page.keyboard.press("Enter");
    // In the server's words, which also say of an expired key that it has expired.
    await page.getByText("Incorrect API key provided: sk-wrong.").waitFor();
    await key.fill("sk-page-0123456789");
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
    await modelsOf(page).waitFor({ state: "attached" });
    await ask(page, "hello");
    await expect.poll(() => lastAnswer(page)).toBe("You said: hello");
    await page.getByRole("button", { name: "Copy as…" }).click();
    for (const language of ["curl", "Node", "Python"]) {
      await page.getByLabel(language, { exact: true }).check();
      const code = (await page.locator("dialog pre").textContent()) ?? "";
      expect(code).toContain("OPENAI_API_KEY");
      expect(code).not.toContain("0123456789");
    }
    // The tab keeps it over a reload; another tab knows nothing of it.
    await page.reload();
    await modelsOf(page).waitFor({ state: "attached" });
    await expect.poll(() => page.locator("dialog").count()).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
    await expect.poll(() => page.evaluate("[localStorage.length, sessionStorage.length]")).toEqual([0, 1]);
    const second = await page.context().newPage();
    await second.goto(`${at.server.url}/`);
    await second.getByLabel("API key").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("it works behind a proxy that serves it below a path", async () => {
    const adminKey = "admin-0123456789abcdef";
    const open = await startTruewire([talker, "--admin-key", adminKey]);
    const proxy = await listening(
      createServer((incoming, outgoing) => {
        const path = (incoming.url ?? "").replace(/^\/deep\/path\//, "/");
        if (path === incoming.url) return void outgoing.writeHead(404).end();
        const { host: _host, ...headers } = incoming.headers;
        const onwards = request(`${open.url}${path}`, { method: incoming.method ?? "GET", headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(outgoing);
        });
        incoming.pipe(onwards);
      }),
    );
    const { page, wrong, close } = await openPage(at.browser, `${proxy}/deep/path/`);
    await ask(page, "hello");
    await expect.poll(() => lastAnswer(page)).toBe("You said: hello");
    // The admin API, too, once its key was entered.
    await page.getByRole("link", { name: "Check" }).click();
    await page.getByLabel("Base URL").fill(`${open.url}/v1`);
    await page.getByLabel("What is asked").selectOption("models");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByLabel("Admin key of this page's server").fill(adminKey);
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByRole("region", { name: `Report on ${open.url}/v1` }).waitFor();
    expect(wrong).toEqual([]);
    await close();
    await open.stop();
  });

  test("another origin's page can neither read nor frame it, nor run its scripts", async () => {
    const stranger = await listening(
      createServer((_, response) => {
        response.setHeader("content-type", "text/html");
        response.end(`<!doctype html><iframe src="${at.server.url}/"></iframe>`);
      }),
    );
    const page = await at.browser.newPage();
    const refused: string[] = [];
    page.on("console", (message) => refused.push(message.text()));
    await page.goto(stranger);
    for (const path of ["/", "/page/page.js"]) {
      const read = `fetch("${at.server.url}${path}", { headers: { accept: "text/html" } }).then(() => "read", () => "refused")`;
      expect(await page.evaluate(read)).toBe("refused");
    }
    // Nor can it let the server of a person's own machine ask others.
    let asked = 0;
    const target = await listening(createServer((_, response) => void response.end(`${++asked}`)));
    const open = await startTruewire([talker]);
    for (const [mode, type] of [
      ["cors", "application/json"],
      ["no-cors", "text/plain"],
    ]) {
      const post = `fetch("${open.url}/admin/check", { method: "POST", mode: "${mode}", headers: { "content-type": "${type}" },
        body: JSON.stringify({ url: "${target}/v1" }) }).then((response) => response.text(), () => "refused")`;
      // A page of this machine may read why.
      expect(await page.evaluate(post)).toMatch(/^$|^refused$|"code":"admin_closed"/);
    }
    await open.stop();
    expect(asked).toBe(0);
    const script = `new Promise((resolve) => {
      const script = document.createElement("script");
      script.onload = () => resolve("ran");
      script.onerror = () => resolve("refused");
      script.src = "${at.server.url}/page/page.js";
      document.head.append(script);
    })`;
    expect(await page.evaluate(script)).toBe("refused");
    expect(refused.join("\n")).toMatch(/frame-ancestors 'none'/);
    await page.close();
  });

  test("while the models are loading, it waits and says so", async () => {
    let loading = true;
    const slow = await listening(
      createServer((incoming, outgoing) => {
        const json = { "content-type": "application/json" };
        if (incoming.url === "/v1/models") {
          if (loading) outgoing.writeHead(503, json).end('{"error":{"message":"The models are still being loaded."}}');
          else outgoing.writeHead(200, json).end('{"object":"list","data":[{"id":"late"}]}');
          return;
        }
        get(`${at.server.url}${incoming.url}`, { headers: { accept: incoming.headers.accept ?? "*/*" } }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(outgoing);
        });
      }),
    );
    const page = await at.browser.newPage();
    await page.goto(slow);
    await page.getByText("The models are still being loaded.").waitFor();
    loading = false;
    await modelsOf(page).filter({ hasText: "late" }).waitFor({ state: "attached" });
    await page.getByText("The models are still being loaded.").waitFor({ state: "detached" });
    await page.close();
  });
});
