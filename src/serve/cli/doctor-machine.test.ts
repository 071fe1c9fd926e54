import { expect, test } from "vitest";
import { machineFindings, type MachineFacts } from "./doctor-machine.ts";

const healthy: MachineFacts = {
  node: "v22.10.0",
  neededNode: ">=20.19.0",
  cores: { all: 8, usable: 8 },
  memory: { total: 32 * 2 ** 30, free: 20 * 2 ** 30 },
  openFiles: 1_048_576,
  libraries: { variant: "linux-x64", version: "0.5.0" },
  servers: [],
  environment: {},
};

/** The problems of a machine that differs from a healthy one: id and cure. */
function problems(differs: Partial<MachineFacts>): (readonly [string, string | undefined])[] {
  const found = machineFindings({ ...healthy, ...differs }).filter(({ status }) => status === "problem");
  return found.map(({ id, cure }) => [id, cure] as const);
}

function textOf(id: string, differs: Partial<MachineFacts>): string | undefined {
  return machineFindings({ ...healthy, ...differs }).find((finding) => finding.id === id)?.text;
}

const config = {
  file: "truewire.yaml",
  models: 1,
  mistakes: [],
  hasKeys: false,
  upstreams: [],
  searchesWeb: false,
} as const;

test("a healthy machine has no problems", () => {
  expect(problems({})).toEqual([]);
});

test("agents search the web only where something runs their searches", () => {
  expect(textOf("web-search", {})).toBe(
    "Codex and Claude Code declare a web search (web_search), and nothing here runs it: their searches fail",
  );
  expect(textOf("web-search", { config: { ...config, searchesWeb: true } })).toBe(
    "Codex and Claude Code can search the web",
  );
});

test.each([
  ["v20.19.0", 0],
  ["v20.18.9", 1],
  ["v18.20.0", 1],
  ["v24.0.0", 0],
])("Node %s", (node, count) => {
  expect(problems({ node })).toHaveLength(count);
});

test("memory, the limits of a container, and descriptors", () => {
  const memory = { total: 32 * 2 ** 30, free: 2 ** 29, limit: 2 ** 30 };
  expect(problems({ memory, openFiles: 1024 }).map(([id]) => id)).toEqual(["memory", "files"]);
  expect(textOf("memory", { memory, cores: { all: 8, usable: 2 } })).toBe(
    "0.5 GiB of memory are free of 32.0 GiB, of which its container may use 1.0 GiB; 2 of 8 cores",
  );
});

test("where the models of a running Truewire compute", () => {
  expect(textOf("device-demo", { devices: { demo: "CPU: no GPU was found" } })).toBe(
    "the model demo runs on CPU: no GPU was found",
  );
});

test("libraries that are missing or do not load, and a GPU that they do not use", () => {
  expect(problems({ libraries: { variant: null } })).toEqual([["libraries", "truewire libraries install"]]);
  expect(textOf("libraries", { libraries: { variant: "linux-x64", failure: "GLIBC_2.38 not found" } })).toContain(
    "GLIBC_2.38 not found",
  );
  expect(problems({ gpuOfSystem: "a GPU of NVIDIA" }).map(([id]) => id)).toEqual(["gpu"]);
  const drivers = { cpu: { fits: true, why: "any processor" }, vulkan: { fits: true, why: "AMD Radeon, Vulkan 1.4" } };
  expect(problems({ libraries: { variant: "linux-x64", drivers } })).toEqual([
    ["gpu", "truewire libraries install vulkan"],
  ]);
  const libraries = { variant: "linux-x64-cuda", version: "0.5.0", gpu: "NVIDIA H100" };
  expect(problems({ gpuOfSystem: "a GPU of NVIDIA", libraries })).toEqual([]);
  expect(textOf("gpu", { libraries })).toBe("local models use the GPU NVIDIA H100");
});

test("port 8080: free, taken by Truewire itself, by another server, by something else", () => {
  const server = { port: 8080, product: "llama-server", state: "open", models: ["m"] } as const;
  expect(textOf("port", {})).toBe("port 8080 is free");
  const truewire = { ...server, product: "Truewire", state: "truewire" } as const;
  expect(textOf("port", { servers: [truewire] })).toBe("Truewire listens on port 8080 already");
  expect(problems({ servers: [truewire, server] })).toEqual([]);
  expect(textOf("port", { servers: [server] })).toContain(
    "port 8080 is taken by llama-server: truewire takes the next",
  );
  expect(problems({ otherProgram: "nginx" })).toEqual([["port", "truewire serve --port 8081"]]);
  expect(textOf("port", { otherProgram: "nginx" })).toBe("port 8080 is taken by another program (nginx)");
  const servers = [{ port: 11_434, product: "Ollama", state: "open", models: ["a", "b", "c"] }] as const;
  expect(problems({ servers })).toEqual([]);
  expect(textOf("server-11434", { servers })).toContain("Ollama answers at http://localhost:11434/v1 with 3 models");
});

test("the configuration: mistakes, and a second key", () => {
  const mistakes = ["truewire.yaml:3: models[0].url is not a URL"];
  expect(textOf("config", { config: { ...config, mistakes } })).toBe(mistakes[0]);
  expect(problems({ config: { ...config, mistakes } })).toHaveLength(1);
  const environment = { TRUEWIRE_API_KEY: "tw-1" };
  expect(problems({ config, environment })).toEqual([]);
  expect(textOf("TRUEWIRE_API_KEY", { environment })).toContain("requires this key of its clients");
  expect(textOf("TRUEWIRE_URL", { environment: { TRUEWIRE_URL: "http://me:secret@gpu:8080" } })).toBe(
    "TRUEWIRE_URL is set: truewire launch and truewire models use the server at gpu:8080",
  );
  expect(problems({ config: { ...config, hasKeys: true }, environment })).toEqual([
    ["TRUEWIRE_API_KEY", "unset TRUEWIRE_API_KEY"],
  ]);
});

test("proxies: only what NO_PROXY excepts reaches this machine, and no password is shown", () => {
  const proxy = "http://me:secret@proxy.example:3128";
  expect(problems({ environment: { HTTPS_PROXY: proxy, NO_PROXY: "example.com localhost" } })).toEqual([
    ["proxy", "export NO_PROXY=example.com,localhost,127.0.0.1"],
  ]);
  for (const NO_PROXY of ["*", "localhost,127.0.0.1", "localhost:8080, 127.0.0.1"])
    expect(problems({ environment: { http_proxy: proxy, NO_PROXY } })).toEqual([]);
  expect(problems({ environment: { http_proxy: proxy, no_proxy: ".localhost,127.0.0.1" } })).toEqual([]);
  expect(JSON.stringify(machineFindings({ ...healthy, environment: { HTTP_PROXY: proxy } }))).not.toContain("secret");
  const upstreams = ["api.openai.com"];
  const environment = { HTTP_PROXY: proxy, NO_PROXY: "*.openai.com,localhost,127.0.0.1" };
  expect(textOf("proxy-upstreams", { config: { ...config, upstreams }, environment })).toBeUndefined();
  expect(textOf("proxy-upstreams", { config: { ...config, upstreams }, environment: { HTTP_PROXY: proxy } })).toContain(
    "api.openai.com directly",
  );
});

test("variables of the vendors: who reads them; the keys themselves are not shown", () => {
  const environment = {
    OPENAI_BASE_URL: "http://localhost:8080/v1",
    OPENAI_API_KEY: "sk-1",
    ANTHROPIC_API_KEY: "sk-2",
  };
  expect(textOf("OPENAI_BASE_URL", { environment })).toContain("localhost:8080, with the key of OPENAI_API_KEY");
  expect(textOf("ANTHROPIC_API_KEY", { environment })).toContain("Claude Code");
  expect(JSON.stringify(machineFindings({ ...healthy, environment }))).not.toContain("sk-");
  expect(problems({ environment: { ANTHROPIC_BASE_URL: "localhost" } })).toEqual([
    ["ANTHROPIC_BASE_URL", "unset ANTHROPIC_BASE_URL"],
  ]);
});

test.each([
  ["--inspect", 1],
  ["--no-warnings -r ./x.js", 1],
  ["--max-old-space-size=512", 1],
  ["--enable-source-maps", 0],
  [" ", 0],
])("NODE_OPTIONS=%s", (NODE_OPTIONS, count) => {
  expect(problems({ environment: { NODE_OPTIONS } })).toHaveLength(count);
});
