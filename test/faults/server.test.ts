import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Agent, fetch as undiciFetch } from "undici";
import { stringify } from "yaml";
import { workersOf } from "../cluster/processes.ts";
import { selfSigned } from "../support/certificate.ts";
import { until } from "../support/scripted-engine.ts";
import { runTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { storesNothing } from "../support/stores-nothing.ts";
import { fault } from "./fault.ts";
import { outcome } from "./outcome.ts";
import { afterwards, ask, canMount, mountSmallDisk, newFolder, serve, writeProgram } from "./support.ts";
import { waitMs } from "../support/hang.ts";

const isUnix = process.platform !== "win32";

/** A stream of so many words, one every 20 ms; the 200 comes with the first. */
function words({ url }: RunningTruewire, count: number): Promise<Response> {
  return ask(url, "program", String(count), { stream: true });
}

fault("the server is stopped (SIGTERM) while streams run", async () => {
  const server = await serve([writeProgram(newFolder()), "--grace", "5s"]);
  const [short, long] = [await words(server, 10), await words(server, 100_000)];
  const stopped = server.stop();
  const [first, second] = [outcome(Promise.resolve(short)), outcome(Promise.resolve(long))];
  await until(async () => !(await accepts(server)), "it accepts no more");
  return {
    clients: [
      `a stream that ends within \`grace\` ${await first}`,
      `a longer one ${await second}`,
      "a new connection is refused",
      `exit code ${await stopped}`,
    ],
    log: server.stderr,
  };
});

/** Whether it takes a new connection. */
function accepts({ url }: RunningTruewire): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => resolve(true));
    socket.on("connect", () => socket.destroy()).on("error", () => resolve(false));
  });
}

fault(
  "the server is killed (SIGKILL, or out of memory) while streams run",
  async () => {
    const server = await serve([writeProgram(newFolder())]);
    let begun: () => void = () => {};
    const speaks = new Promise<void>((resolve) => (begun = resolve));
    const running = outcome(words(server, 100_000), () => begun());
    await speaks;
    await server.stop("SIGKILL");
    return { clients: [await running], log: server.stderr };
  },
  isUnix,
);

fault(
  "one of several workers is killed while streams run",
  async () => {
    const source = await serve([writeProgram(newFolder())]);
    const config = join(newFolder(), "truewire.yaml");
    const models = [{ kind: "upstream", url: `${source.url}/v1` }];
    writeFileSync(config, stringify({ port: 0, workers: 2, ...storesNothing, models }));
    const server = await serve(["--config", config]);
    const streams: Response[] = [];
    for (let i = 0; i < 8; i++) streams.push(await words(server, 300));
    process.kill(workersOf(server)[0] ?? 0, "SIGKILL");
    const ends = await Promise.all(streams.map((stream) => outcome(Promise.resolve(stream))));
    const [cut, whole] = [...new Set(ends)].sort((one) => (one.includes("[DONE]") ? 1 : -1));
    return {
      clients: [
        `its streams ${cut ?? ""}`,
        `those of the others ${whole ?? ""}`,
        `a new request ${await outcome(words(server, 1))}`,
      ],
      log: server.stderr,
    };
  },
  process.platform === "linux",
);

fault("the connection of a client breaks that sent `X-Truewire-Resume`", async () => {
  const server = await serve([writeProgram(newFolder())]);
  const leaving = new AbortController();
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-truewire-resume": "60s" },
    body: JSON.stringify({ model: "program", messages: [{ role: "user", content: "50" }], stream: true }),
    signal: leaving.signal,
  });
  leaving.abort();
  const place = `${server.url}/v1/streams/${response.headers.get("x-request-id")}`;
  // The server hears of it a moment later.
  await until(() => server.stderr().includes('"lost":1'), "the answer has ended without its client");
  return { clients: [`\`GET /v1/streams/{id}\` ${await outcome(fetch(place))}`], log: server.stderr };
});

fault("the port is taken", async () => {
  const server = await serve([writeProgram(newFolder())]);
  const { code, stderr } = await runTruewire(["serve", writeProgram(newFolder()), "--port", new URL(server.url).port]);
  return { clients: [code === 1 ? "the server does not start" : "it starts"], log: () => stderr };
});

fault(
  "the configuration has a mistake when it is read again (SIGHUP)",
  async () => {
    const folder = newFolder();
    writeProgram(folder);
    const file = join(folder, "truewire.yaml");
    writeFileSync(file, "port: 0\nmodels: [./program.mjs]\n");
    const server = await serve(["--config", file]);
    const running = await words(server, 50);
    writeFileSync(file, "port: 0\nmodels:\n  - kind: nonsense\n");
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "it is refused");
    return {
      clients: [
        `the running answer ${await outcome(Promise.resolve(running))}`,
        `the next one ${await outcome(words(server, 1))}`,
      ],
      log: server.stderr,
    };
  },
  isUnix,
);

fault(
  "the file of keys has a mistake when it is read again (SIGHUP)",
  async () => {
    const key = "tw-key-of-alice-0123456789";
    const file = join(newFolder(), "keys.yaml");
    writeFileSync(file, `- { name: alice, hash: "sha256:${createHash("sha256").update(key).digest("hex")}" }\n`);
    const server = await serve([writeProgram(newFolder()), "--keys-file", file]);
    writeFileSync(file, "- { name: alice, hash: md5 }\n");
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "it is refused");
    const headers = { authorization: `Bearer ${key}` };
    return { clients: [await outcome(ask(server.url, "program", "1", {}, headers))], log: server.stderr };
  },
  isUnix,
);

const [first, other] = [selfSigned("first"), selfSigned("other")];

fault(
  "the certificate is renewed with a file that is broken",
  async () => {
    const folder = newFolder();
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(cert, first?.cert ?? "");
    writeFileSync(key, first?.key ?? "");
    const server = await serve([writeProgram(newFolder()), "--tls-cert", cert, "--tls-key", key]);
    writeFileSync(cert, (other?.cert ?? "").slice(0, 100));
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "it is refused");
    const dispatcher = new Agent({ connect: { ca: first?.cert ?? "", timeout: waitMs } });
    afterwards(() => dispatcher.close());
    const { status } = await undiciFetch(`${server.url}/v1/models`, { dispatcher });
    return { clients: [`${status}, with the old certificate`], log: server.stderr };
  },
  isUnix && first !== null && other !== null,
);

fault("the collector of traces hangs", async () => {
  // It takes connections and says nothing.
  const collector = createServer(() => {});
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  afterwards(() => collector.close());
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
  const server = await serve([writeProgram(newFolder())], { env });
  const answers = new Set<string>();
  for (let i = 0; i < 20; i++) answers.add(await outcome(words(server, 2)));
  return { clients: [...answers, `exit code ${await server.stop()}`], log: server.stderr };
});

fault(
  "the disk of the log is full",
  async () => {
    const folder = newFolder();
    mountSmallDisk(folder, 64 * 1024);
    const [log, filler] = [join(folder, "log"), join(folder, "filler")];
    writeFileSync(filler, Buffer.alloc(56 * 1024));
    const server = await serve([writeProgram(newFolder())], { stderrTo: log });
    const answers = new Set<string>();
    for (let i = 0; i < 100; i++) answers.add(await outcome(words(server, 1)));
    rmSync(filler);
    // What was said meanwhile has waited.
    await until(() => finishedLines(log) === 100, "the log goes on");
    return { clients: [...answers, `exit code ${await server.stop()}`], log: () => "" };
  },
  canMount,
);

function finishedLines(log: string): number {
  return readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => line.endsWith('"msg":"finished"}')).length;
}

fault(
  "the reader of the log has ended",
  async () => {
    const clients = new Set<string>();
    for (const format of ["json", "pretty"]) {
      const server = await serve([writeProgram(newFolder()), "--log-format", format]);
      server.process.stderr?.destroy();
      server.process.stdout?.destroy();
      for (let i = 0; i < 20; i++) clients.add(await outcome(words(server, 1)));
      clients.add(`exit code ${await server.stop()}`);
    }
    return { clients: [...clients], log: () => "" };
  },
  isUnix,
);

fault(
  "the reader of the log hangs",
  async () => {
    const pipe = join(newFolder(), "pipe");
    execFileSync("mkfifo", [pipe]);
    const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    afterwards(() => closeSync(reader));
    const server = await serve([writeProgram(newFolder())], { stderrTo: pipe });
    const answers = new Set<string>();
    // More than a pipe holds.
    for (let i = 0; i < 500; i++) answers.add(await outcome(ask(server.url, "nobody", "x")));
    return { clients: [...answers, `exit code ${await server.stop()}`], log: () => "" };
  },
  isUnix,
);

fault(
  "the disk of `--log-stream` is full",
  async () => {
    const folder = newFolder();
    mountSmallDisk(folder, 16 * 1024);
    const server = await serve([writeProgram(newFolder()), "--log-stream", join(folder, "events")]);
    const answers = new Set<string>();
    for (let i = 0; i < 20; i++) answers.add(await outcome(words(server, 20)));
    return { clients: [...answers], log: server.stderr };
  },
  canMount,
);
