import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, copyFileSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, serveModels, small } from "../models/support.ts";
import type { TestServer } from "../models/support.ts";
import { until } from "../support/scripted-engine.ts";
import type { StartOptions } from "../support/serve.ts";
import { fault } from "./fault.ts";
import { outcome } from "./outcome.ts";
import { childrenOf } from "../support/processes.ts";
import { afterwards } from "./support.ts";

const isLinux = process.platform === "linux";
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
const lazy = (name: string): string => `{ kind: local, path: ${name}.gguf, load: lazy, ${small} }`;
const eager = (name: string, more = ""): string => `{ kind: local, path: ${name}.gguf, ${small}${more} }`;

async function serveThese(
  models: readonly string[],
  settings: readonly string[] = [],
  options: StartOptions = {},
): Promise<TestServer> {
  const server = await serveModels(models, ["logLevel: info", ...settings], options);
  afterwards(() => server.end());
  return server;
}

/** A stream that goes on for long; the 200 comes with its first text, so whoever has it has begun. */
function begun(server: TestServer, model: string, more: object = {}): Promise<Response> {
  return ask(server.url, model, "endless", { stream: true, ...more });
}

/**
 * 0: there is none yet. Until it has become another program it is a copy of the server, which waits for that: a test that stopped such a
 * one stopped the server.
 */
function modelProcess(server: TestServer): number {
  const commandOf = (pid: number): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8");
    } catch {
      return "";
    }
  };
  return childrenOf(server.process.pid ?? 0).find((pid) => commandOf(pid).includes("llama/process/main")) ?? 0;
}

const plain = (server: TestServer, model: string): Promise<string> => outcome(ask(server.url, model, "plain"));

fault("a model needs more memory than `memory` allows", async () => {
  const message = await serveModels([lazy("a")], ["memory: 100MiB"]).then(
    () => "",
    (error: unknown) => String(error),
  );
  return {
    clients: [message.includes("exited with 1") ? "the server does not start" : "it starts"],
    log: () => message,
  };
});

fault("a model does not fit next to those that stay loaded", async () => {
  const server = await serveThese([eager("a", ", keep: true"), lazy("b")], ["memory: 200MiB"]);
  return {
    clients: [`for it ${await plain(server, "b")}`, `for the others ${await plain(server, "a")}`],
    log: server.stderr,
  };
});

fault("a model is asked for while another one, whose memory it needs, answers", async () => {
  const server = await serveThese([lazy("a"), lazy("b")], ["memory: 200MiB"]);
  const running = outcome(begun(server, "a", { max_tokens: 2000 }));
  await until(async () => (await health(server)).includes('"busy":1'), "it runs");
  const other = outcome(ask(server.url, "b", "plain", { stream: true }));
  return { clients: [`the running answer ${await running}`, `then the other one ${await other}`], log: server.stderr };
});

fault("no other model can be unloaded within `loadWait`", async () => {
  const server = await serveThese([lazy("a"), lazy("b")], ["memory: 200MiB", "loadWait: 300ms"]);
  const running = outcome(begun(server, "a", { max_tokens: 8000 }));
  await until(async () => (await health(server)).includes('"busy":1'), "it runs");
  const refused = await plain(server, "b");
  return { clients: [refused, `the running answer ${await running}`], log: server.stderr };
});

fault("the file of a model vanishes", async () => {
  const server = await serveThese([eager("a"), lazy("b")], ["memory: 200MiB"]);
  const file = join(server.folder, "a.gguf");
  renameSync(file, `${file}.away`);
  const loaded = await plain(server, "a");
  await plain(server, "b");
  const later = await plain(server, "a");
  renameSync(`${file}.away`, file);
  await until(async () => (await plain(server, "a")) === "200", "it is loaded again");
  return { clients: [`while it is loaded ${loaded}`, `later ${later}`], log: server.stderr };
});

fault(
  "the file of a model is cut short while the model answers",
  async () => {
    const server = await serveThese([eager("a")]);
    const file = join(server.folder, "a.gguf");
    const whole = readFileSync(file);
    const running = await begun(server, "a", { max_tokens: 2000 });
    truncateSync(file, 4096);
    const cut = await outcome(Promise.resolve(running));
    const next = await plain(server, "a");
    writeFileSync(file, whole);
    return { clients: [`the running answer ${cut}`, `the next one ${next}`], log: server.stderr };
  },
  isLinux,
);

fault(
  "the same, where there is no memory for the weights and the file is mapped ([local-models.md](local-models.md#slots-context-memory))",
  async () => {
    // With a prompt cache of this size, there is none.
    const server = await serveThese([eager("a", ", cacheMemory: 1000GiB")]);
    const file = join(server.folder, "a.gguf");
    const whole = readFileSync(file);
    const running = await begun(server, "a");
    truncateSync(file, 4096);
    const cut = await outcome(Promise.resolve(running));
    const next = await plain(server, "a");
    writeFileSync(file, whole);
    await until(async () => (await plain(server, "a")) === "200", "it is started again");
    return { clients: [`the running answer ${cut}`, `the next one ${next}`], log: server.stderr };
  },
  isLinux,
);

fault("the file of a model is cut short before it is loaded", async () => {
  const server = await serveThese([lazy("a")]);
  const file = join(server.folder, "a.gguf");
  copyFileSync(file, `${file}.whole`);
  truncateSync(file, Math.floor(statSync(file).size / 2));
  const refused = await plain(server, "a");
  renameSync(`${file}.whole`, file);
  await until(async () => (await plain(server, "a")) === "200", "it is loaded");
  return { clients: [refused], log: server.stderr };
});

/** The process of a model gets a signal while it answers. `settings`: further ones of the model. */
function signalled(what: string, signal: NodeJS.Signals, settings = ""): void {
  fault(
    what,
    async () => {
      const server = await serveThese([eager("a", settings)]);
      const running = await begun(server, "a");
      process.kill(modelProcess(server), signal);
      return {
        clients: [
          `the running answer ${await outcome(Promise.resolve(running))}`,
          `the next one waits and is ${await plain(server, "a")}`,
        ],
        log: server.stderr,
      };
    },
    isLinux,
  );
}

signalled("the process of a model is killed while it answers", "SIGKILL");
signalled("the process of a model hangs while it answers", "SIGSTOP", ", stepTimeout: 1s");

fault(
  "there is less memory than a model takes, and no setting says so (`ulimit -d`)",
  async () => {
    // Its cache takes 3.6 GiB, and V8 of Node 24 reserves half a GiB for each thread.
    const huge = `{ kind: local, path: a.gguf, load: lazy, threads: 1, gpu: "off", contextSize: 30000000, slots: 1 }`;
    const server = await serveThese([huge, lazy("b")], [], { memoryKibibytes: 3 * 2 ** 20 });
    return {
      clients: [`for it ${await plain(server, "a")}`, `for the others ${await plain(server, "b")}`],
      log: server.stderr,
    };
  },
  isLinux,
);

fault(
  "no memory is left for the process of a model while it answers",
  async () => {
    const server = await serveThese([eager("a")]);
    const running = await begun(server, "a");
    const pid = modelProcess(server);
    // As much as it has, and next to nothing more.
    const used = Number(/VmData:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
    execFileSync("prlimit", ["--pid", String(pid), `--data=${used + 2 ** 20}`]);
    const large = ask(server.url, "a", "x".repeat(20_000_000)).catch(() => undefined);
    const clients = [
      `the running answer ${await outcome(Promise.resolve(running))}`,
      `the next one waits and is ${await plain(server, "a")}`,
    ];
    await large;
    return { clients, log: server.stderr };
  },
  isLinux && hasPrlimit,
);

// Nothing ended it: whoever waited for the model waited for ever.
fault(
  "the process of a model hangs while it loads",
  async () => {
    const server = await serveThese([`{ kind: local, path: a.gguf, load: lazy, loadTimeout: 5s, ${small} }`]);
    const asking = plain(server, "a");
    await until(() => modelProcess(server) > 0, "the process has begun");
    process.kill(modelProcess(server), "SIGSTOP");
    const refused = await asking;
    await until(async () => (await plain(server, "a")) === "200", "it is loaded");
    return { clients: [refused], log: server.stderr };
  },
  isLinux,
);

fault("a client reads the numbers and the health while a model is loaded", async () => {
  const server = await serveThese([lazy("a")]);
  // A file that takes a moment.
  appendFileSync(join(server.folder, "a.gguf"), Buffer.alloc(2 ** 20));
  const answer = plain(server, "a");
  const metrics = await fetch(`${server.url}/metrics`);
  const text = await metrics.text();
  const told = text.includes('truewire_engine_ready{engine="a"} 0') ? "0" : "1";
  return {
    clients: [`the numbers ${metrics.status}, \`truewire_engine_ready\` ${told}`, `the answer ${await answer}`],
    log: server.stderr,
  };
});

async function health(server: TestServer): Promise<string> {
  return (await fetch(`${server.url}/health`)).text();
}
