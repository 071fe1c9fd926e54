import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { builtMain, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-deploy-"));
let server: RunningTruewire;
beforeAll(async () => {
  writeFileSync(join(folder, "program.ts"), "export default () => 'Hello';\n");
  server = await startTruewire([join(folder, "program.ts")]);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const has = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;
const exitCode = (file: string, args: readonly string[]): Promise<number> =>
  new Promise((resolve) => execFile(file, [...args], (error) => resolve(Number(error?.code ?? 0))));

test("systemd takes the unit as it is", ({ skip }) => {
  if (!has("systemd-analyze")) {
    console.log("skipped: systemd-analyze is not on the PATH");
    return skip();
  }
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "deploy/truewire.service"], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

test("the release workflow publishes what was tested, with provenance and no other right", () => {
  const text = readFileSync(".github/workflows/release.yml", "utf8");
  const [document] = parseAllDocuments(text);
  expect(document?.errors).toEqual([]);
  expect(document?.toJS()).toMatchObject({
    permissions: {},
    jobs: { publish: { environment: "npm", permissions: { contents: "read", "id-token": "write" } } },
  });
  const steps = document?.getIn(["jobs", "publish", "steps"]) as { toJSON(): { run?: string; uses?: string }[] };
  const runs = steps.toJSON().flatMap(({ run }) => run ?? []);
  expect(runs.slice(1)).toEqual(["npm ci", ".ci/run", "npm publish --provenance --access public"]);
  const check = (tag: string): number | null =>
    spawnSync("sh", ["-c", runs[0] ?? "exit 9"], { env: { ...process.env, GITHUB_REF_NAME: tag } }).status;
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect([check(`v${version}`), check("v9.9.9")]).toEqual([0, 1]);
});

describe("the container file", () => {
  const text = readFileSync("deploy/Containerfile", "utf8");

  test("asks for the version of node-llama-cpp that is tested", () => {
    const { devDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
      devDependencies: Record<string, string>;
    };
    expect(/^ARG NODE_LLAMA_CPP=(.*)$/m.exec(text)?.[1]).toBe(devDependencies["node-llama-cpp"]);
  });

  test("has a health check that knows a server that is there from one that is not", async () => {
    const command = JSON.parse(/HEALTHCHECK[^\n]*\\\n\s*CMD (\[.*\])$/m.exec(text)?.[1] ?? "[]") as string[];
    const [, ...args] = command.map((part) => part.replace("http://127.0.0.1:8080", server.url));
    expect(command[0]).toBe("node");
    expect(await exitCode(process.execPath, args)).toBe(0);
    const nobody = args.map((part) => part.replace(server.url, "http://127.0.0.1:9"));
    expect(await exitCode(process.execPath, nobody)).toBe(1);
  });
});

describe("the Kubernetes manifest", () => {
  const documents = parseAllDocuments(readFileSync("deploy/kubernetes.yaml", "utf8"));
  const kind = (name: string) => documents.find((document) => document.get("kind") === name);
  const inPod = (...path: (string | number)[]): unknown =>
    kind("Deployment")?.getIn(["spec", "template", "spec", ...path]);
  const inContainer = (...path: (string | number)[]): unknown => inPod("containers", 0, ...path);
  const configuration = String(kind("ConfigMap")?.getIn(["data", "truewire.yaml"]));

  test("holds a configuration that is valid, and stops the instance later than that lets streams end", async () => {
    const file = join(folder, "truewire.yaml");
    writeFileSync(file, configuration);
    const checked = spawnSync(process.execPath, [builtMain, "config", "check", file], {
      encoding: "utf8",
      env: { ...process.env, TRUEWIRE_KEY: "sk-example-0123456789" },
    });
    expect([checked.status, checked.stderr]).toEqual([0, ""]);
    const graceSeconds = Number(/^grace: (\d+)s$/m.exec(configuration)?.[1]);
    const preStopSeconds = Number(inContainer("lifecycle", "preStop", "exec", "command", 1));
    expect(inPod("terminationGracePeriodSeconds")).toBeGreaterThan(graceSeconds + preStopSeconds);
  });

  test.each(["livenessProbe", "readinessProbe", "startupProbe"])(
    "%s asks a path that answers without a key",
    async (name) => {
      const path = inContainer(name, "httpGet", "path");
      expect((await fetch(`${server.url}${String(path)}`)).status).toBe(200);
    },
  );
});
