import { execFile, spawn } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { basename, join, resolve } from "node:path";

/** Where everything is that is installed here: outside of git, and of node_modules. `TRUEWIRE_INTEROP` names another folder. */
export const place: string = resolve(process.env["TRUEWIRE_INTEROP"] ?? ".cache/interop");

/** Returns a path in `place`; its folder exists. */
export function inPlace(...parts: readonly string[]): string {
  const path = join(place, ...parts);
  mkdirSync(join(path, ".."), { recursive: true });
  return path;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command and returns its standard output. Rejects with the end of what it said. */
export function command(file: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((settle, reject) => {
    const env = { ...process.env, ...options.env };
    execFile(file, args, { cwd: options.cwd, env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (!error) return settle(stdout);
      const said = `${stdout}${stderr}`.trim().split("\n").slice(-12).join("\n");
      reject(new Error(`${[file, ...args].join(" ").slice(0, 200)}: ${said === "" ? error.message : said}`));
    });
  });
}

/** A Python environment of its own, in which packages of fixed versions are. */
export interface PythonPackages {
  readonly folder: string;
  /** Returns the path of a program of the environment. */
  program(name: string): string;
  /** Returns the version of a package that is installed; undefined: it is not. */
  version(name: string): string | undefined;
  /** Installs the packages (`name==version`, and options of pip). */
  install(...packages: readonly string[]): Promise<void>;
}

/** Returns the environment of a name, whether it is there or not. `python`: the interpreter that it is made with. */
export function pythonPackages(name: string, python = "python3"): PythonPackages {
  const folder = inPlace("venv", name);
  const program = (file: string): string => join(folder, "bin", file);
  return {
    folder,
    program,
    version(wanted) {
      const normal = (text: string): string => text.toLowerCase().replaceAll(/[-_.]/g, "_");
      const lib = join(folder, "lib");
      const versions = existsSync(lib) ? readdirSync(lib).filter((entry) => entry.startsWith("python")) : [];
      for (const python of versions) {
        for (const entry of readdirSync(join(lib, python, "site-packages"))) {
          if (!entry.endsWith(".dist-info")) continue;
          const [found = "", version] = entry.slice(0, -".dist-info".length).split("-");
          if (normal(found) === normal(wanted)) return version;
        }
      }
      return undefined;
    },
    async install(...packages) {
      // Programs of pyenv start only in a version that is chosen.
      const env = /\d\.\d+$/.test(python) ? { env: { PYENV_VERSION: python.replace("python", "") } } : {};
      if (!existsSync(program("python"))) await command(python, ["-m", "venv", folder], env);
      await command(program("pip"), ["install", "--quiet", "--disable-pip-version-check", ...packages]);
    },
  };
}

/** A folder with packages of npm, of fixed versions. */
export interface NodePackages {
  /** Its `node_modules`. */
  readonly modules: string;
  /** Returns the path of a program of the packages. */
  program(name: string): string;
  /** Returns the version of a package that is installed; undefined: it is not. */
  version(name: string): string | undefined;
  /** Installs the packages (`name@version`). */
  install(...packages: readonly string[]): Promise<void>;
}

/** Returns the folder of a name, whether it is there or not. `overrides`: versions of packages that the packages need. */
export function nodePackages(name: string, overrides: Readonly<Record<string, string>> = {}): NodePackages {
  const manifest = inPlace("npm", name, "package.json");
  const folder = join(manifest, "..");
  const modules = join(folder, "node_modules");
  return {
    modules,
    program: (file) => join(modules, ".bin", file),
    version(wanted) {
      const file = join(modules, wanted, "package.json");
      return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version : undefined;
    },
    async install(...packages) {
      writeFileSync(manifest, JSON.stringify({ private: true, overrides }));
      await command("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...packages], { cwd: folder });
    },
  };
}

/** Returns a port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
  const { port } = server.address() as AddressInfo;
  await new Promise((settle) => server.close(settle));
  return port;
}

export interface RunningProcess {
  readonly pid: number;
  /** Ends it and the processes that it has started. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface ServerOptions extends CommandOptions {
  /** The URL that answers with a status below 500 when the server is ready. */
  readonly ready: string;
  /** Where its output goes, below `place`. */
  readonly log: string;
  /** How long it may take to be ready, in seconds; default: 600. */
  readonly seconds?: number;
}

/** Starts a server and resolves when it is ready. Rejects with the path of its log when it ends before, or is not ready in time. */
export async function startServer(
  file: string,
  args: readonly string[],
  options: ServerOptions,
): Promise<RunningProcess> {
  const { cwd, env, ready, seconds = 600 } = options;
  const log = inPlace("logs", options.log);
  const output = createWriteStream(log);
  await new Promise((settle) => output.once("open", settle));
  // In a process group of its own: servers start workers, which end with them.
  const child = spawn(file, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", output, output],
    detached: true,
  });
  const ended = new Promise<void>((settle) => {
    child.once("exit", () => settle());
    child.once("error", () => settle());
  });
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  const killAtExit = (): void => kill("SIGKILL");
  process.once("exit", killAtExit);
  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
    kill(signal);
    const timer = setTimeout(() => kill("SIGKILL"), 10_000);
    await ended;
    clearTimeout(timer);
    // Its workers, where it has left them.
    kill("SIGKILL");
    process.removeListener("exit", killAtExit);
  };
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
  for (const end = Date.now() + seconds * 1000; Date.now() < end && !isOver();) {
    const status = await fetch(ready, { signal: AbortSignal.timeout(5000) }).then(
      async (response) => (await response.arrayBuffer(), response.status),
      () => 0,
    );
    if (status > 0 && status < 500) return { pid: child.pid ?? 0, stop };
    await new Promise((settle) => setTimeout(settle, 250));
  }
  const outcome = isOver() ? "ended at its start" : `was not ready within ${seconds} s`;
  await stop("SIGKILL");
  console.error(`see ${log}`);
  // The table of results has the message: no path of this machine.
  throw new Error(`${basename(file)} ${outcome}`);
}
