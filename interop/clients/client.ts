import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { command, inPlace, nodePackages, pythonPackages } from "../place.ts";

/** A client of another project: a program in this folder, which says in its first lines what it does and prints. */
export interface RealClient {
  /** As files and the command line name it. */
  readonly id: string;
  /** As people call it. */
  readonly name: string;
  /** Where it comes from, such as `pip openai`. */
  readonly from: string;
  readonly api: "chat" | "responses" | "messages" | "ollama" | "gemini";
  /** It installs within two minutes, so that CI has it. */
  readonly isQuick?: boolean;
  /** It also runs sessions with tools over each of the models that `TRUEWIRE_SESSIONS` names. */
  readonly hasSessions?: boolean;
  /** Returns the installed version; undefined: it is not installed. */
  version(): string | undefined;
  /** Installs it. Rejects with the reason where that is not possible. */
  install(): Promise<void>;
  /** The program and its arguments. */
  readonly program: readonly [file: string, ...args: string[]];
}

/** What a program says of one scenario. `ok` is null where the client has no such thing. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly ok: boolean | null;
  readonly detail: string;
}

const folder = "interop/clients";

interface PythonClient extends Pick<RealClient, "id" | "name" | "api" | "isQuick"> {
  readonly file: string;
  readonly args?: readonly string[];
  /** `name==version`; the first is the client itself. */
  readonly packages: readonly [string, ...string[]];
  /** The environment that clients with the same packages share. */
  readonly environment: string;
}

export function pythonClient({ file, args = [], packages, environment, ...named }: PythonClient): RealClient {
  const installed = pythonPackages(`client-${environment}`);
  const [itself = ""] = packages[0].replace(/\[.*\]/, "").split("==");
  return {
    ...named,
    from: `pip ${itself}`,
    version: () => installed.version(itself),
    install: () => installed.install(...packages),
    program: [installed.program("python"), join(folder, "python", file), ...args],
  };
}

interface NodeClient extends Pick<RealClient, "id" | "name" | "api" | "hasSessions"> {
  readonly file: string;
  readonly args?: readonly string[];
  /** `name@version`; the first is the client itself. `node` is among them where it needs another one than Truewire. */
  readonly packages: readonly [string, ...string[]];
  /** The folder that clients with the same packages share. */
  readonly environment: string;
}

/** A module in `javascript/`, which runs with the Node.js of its packages. */
export function nodeClient({ file, args = [], packages, environment, ...named }: NodeClient): RealClient {
  const installed = nodePackages(`client-${environment}`);
  const itself = packages[0].slice(0, packages[0].lastIndexOf("@"));
  return {
    ...named,
    from: `npm ${itself}`,
    version: () => installed.version(itself),
    install: () => installed.install(...packages),
    program: [
      "env",
      `NODE_PATH=${installed.modules}`,
      installed.program("node"),
      join(folder, "javascript", file),
      ...args,
    ],
  };
}

/** A Go program in `go/`, whose module is named in `go.mod`. */
export function goClient(
  named: Pick<RealClient, "id" | "name" | "api" | "isQuick">,
  { program, module }: Record<string, string>,
): RealClient {
  const binary = inPlace("clients-go", program ?? "");
  const { version } = versionIn("go/go.mod", `${module} v`);
  return {
    ...named,
    from: `go ${module}`,
    version: () => (existsSync(binary) ? version : undefined),
    async install() {
      const env = { GOPATH: inPlace("go"), GOFLAGS: "-modcacherw" };
      await command("go", ["build", "-o", binary, `./${program}`], { cwd: join(folder, "go"), env });
    },
    program: [binary],
  };
}

/** A program of the crate in `rust/`, whose client is named in `Cargo.toml`. */
export function rustClient(
  named: Pick<RealClient, "id" | "name" | "api">,
  { program, crate }: Record<string, string>,
): RealClient {
  const binary = inPlace("rust", "debug", program ?? "");
  const { version } = versionIn("rust/Cargo.toml", `${crate} = { version = "=`);
  return {
    ...named,
    from: `cargo ${crate}`,
    version: () => (existsSync(binary) ? version : undefined),
    async install() {
      const env = { CARGO_HOME: inPlace("cargo"), CARGO_TARGET_DIR: inPlace("rust") };
      await command("cargo", ["build", "--quiet", "--locked"], { cwd: join(folder, "rust"), env });
    },
    program: [binary],
  };
}

/** A class of the Maven project in `java/`, whose client is named in `pom.xml`. */
export function javaClient(
  named: Pick<RealClient, "id" | "name" | "api">,
  { main, artifact }: Record<string, string>,
): RealClient {
  const classes = inPlace("java", "classes");
  const libraries = inPlace("java", "libraries");
  const { version } = versionIn("java/pom.xml", `${artifact}</artifactId><version>`);
  return {
    ...named,
    from: `maven ${artifact}`,
    version: () => (existsSync(join(classes, "truewire", `${main}.class`)) ? version : undefined),
    async install() {
      const goals = ["compile", "dependency:copy-dependencies", `-DoutputDirectory=${libraries}`];
      const places = [`-Dmaven.repo.local=${inPlace("maven")}`, `-Dtruewire.build=${inPlace("java")}`];
      await command("mvn", ["--quiet", "--batch-mode", ...places, ...goals], { cwd: join(folder, "java") });
    },
    program: ["java", "-cp", `${classes}:${libraries}/*`, `truewire.${main}`],
  };
}

/** The version that a manifest pins, which directly follows the text. */
function versionIn(manifest: string, before: string): { version: string } {
  const text = readFileSync(join(folder, manifest), "utf8");
  const start = text.indexOf(before) + before.length;
  const version = /^[\w.+-]+/.exec(text.slice(start))?.[0];
  if (!text.includes(before) || version === undefined) throw new Error(`${manifest} pins no version after "${before}"`);
  return { version };
}

/** Runs a client's program over a Truewire, and returns what it says of each scenario. `sessions`: the models of its sessions. */
export function runClient(
  client: RealClient,
  url: string,
  model: string,
  sessions: readonly string[],
): Promise<ScenarioResult[]> {
  const [file, ...args] = client.program;
  const env = {
    ...process.env,
    TRUEWIRE_URL: url,
    TRUEWIRE_MODEL: model,
    TRUEWIRE_KEY: "none",
    TRUEWIRE_SESSIONS: JSON.stringify(sessions),
  };
  return new Promise((settle) => {
    execFile(file, args, { env, maxBuffer: 1 << 26, timeout: 300_000 }, (error, stdout, stderr) => {
      const lines = stdout.split("\n").filter((line) => line.startsWith("{") && line.includes('"scenario"'));
      const results = lines.map((line) => JSON.parse(line) as ScenarioResult);
      if (results.length === 0) {
        const detail = `${stderr}\n${error?.message ?? ""}`.trim().slice(-400);
        results.push({ scenario: "start", ok: false, detail: detail || "it printed nothing" });
      }
      settle(results);
    });
  });
}
