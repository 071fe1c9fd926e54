import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Dispatcher, EnvHttpProxyAgent } from "undici";

/** A package's archive, and its hash as the registry names it. */
export interface PackageArchive {
  readonly url: string;
  readonly integrity: string;
}

const scope = "@node-llama-cpp";

/** The registry that npm is configured to use for node-llama-cpp's packages. */
export class NpmRegistry {
  readonly #base: string;
  readonly #settings: ReadonlyMap<string, string>;
  /** Uses the proxies that the environment names. */
  #dispatcher: EnvHttpProxyAgent | undefined;

  /** `userConfig`: the text of the user's `.npmrc`. */
  constructor(env: NodeJS.ProcessEnv = process.env, userConfig: string = readUserConfig(env)) {
    this.#settings = settingsIn(userConfig, env);
    const base =
      this.#settings.get(`${scope}:registry`) ??
      env["npm_config_registry"] ??
      this.#settings.get("registry") ??
      defaultOfNpm();
    this.#base = base.replace(/\/?$/, "/");
  }

  /** Where a version of a package is. Throws an Error with one sentence. */
  async find(name: string, version: string): Promise<PackageArchive> {
    const { body } = await this.#get(`${this.#base}${scope}%2f${name}/${version}`);
    const { dist } = (await body.json()) as {
      readonly dist?: { readonly tarball?: string; readonly integrity?: string };
    };
    if (!dist?.tarball || !dist.integrity)
      throw new Error(`${this.#base} names no archive of ${scope}/${name}@${version}.`);
    return { url: this.#reachable(dist.tarball), integrity: dist.integrity };
  }

  /** As npm does: a mirror may pass on the addresses of the public registry, whose paths begin with the package. */
  #reachable(tarball: string): string {
    const { origin, pathname } = new URL(tarball);
    const isElsewhere = origin !== new URL(this.#base).origin;
    return isElsewhere && pathname.startsWith(`/${scope}/`) ? this.#base + pathname.slice(1) : tarball;
  }

  /** Requests an archive from a byte on. `from` is 0 in the answer if the registry sends the whole. */
  async download(
    url: string,
    from: number,
  ): Promise<{ body: Dispatcher.ResponseData["body"]; from: number; bytes: number }> {
    const { body, headers, statusCode } = await this.#get(url, from > 0 ? { range: `bytes=${from}-` } : {});
    const start = statusCode === 206 ? from : 0;
    return { body, from: start, bytes: start + Number(headers["content-length"] ?? 0) };
  }

  async close(): Promise<void> {
    await this.#dispatcher?.close();
  }

  async #get(url: string, headers: Record<string, string> = {}, redirects = 5): Promise<Dispatcher.ResponseData> {
    const token = url.startsWith(this.#base) && this.#settings.get(`${this.#base.replace(/^https?:/, "")}:_authToken`);
    const authorization = token ? { authorization: `Bearer ${token}` } : {};
    // The index of undici is loaded here, not when a server starts.
    const { default: undici } = await import("undici/index.js");
    const dispatcher = (this.#dispatcher ??= new undici.EnvHttpProxyAgent());
    const options = { headers: { ...headers, ...authorization }, dispatcher };
    const answer = await undici.request(url, options).catch((cause: Error) => {
      throw new Error(`${new URL(url).origin} cannot be reached (${cause.message || cause.name}).`, { cause });
    });
    const { location } = answer.headers;
    if (answer.statusCode < 300) return answer;
    await answer.body.dump();
    if (answer.statusCode < 400 && typeof location === "string" && redirects > 0)
      return this.#get(new URL(location, url).href, headers, redirects - 1);
    throw new Error(`${url} answered ${answer.statusCode}.`);
  }
}

function readUserConfig(env: NodeJS.ProcessEnv): string {
  try {
    return readFileSync(env["npm_config_userconfig"] ?? join(homedir(), ".npmrc"), "utf8");
  } catch {
    return "";
  }
}

/** The lines `name=value`, in which `${NAME}` is replaced by a variable. Source: docs.npmjs.com, npmrc. */
function settingsIn(text: string, env: NodeJS.ProcessEnv): ReadonlyMap<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const at = line.indexOf("=");
      if (at === -1 || /^\s*[;#]/.test(line)) return [];
      const value = line
        .slice(at + 1)
        .trim()
        .replace(/^"(.*)"$/, "$1");
      return [[line.slice(0, at).trim(), value.replace(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? "")] as const];
    }),
  );
}

/** The registry that npm uses where no configuration names one. Throws an Error with one sentence. */
function defaultOfNpm(): string {
  try {
    const isWindows = process.platform === "win32";
    const npm = isWindows ? "npm.cmd" : "npm";
    return execFileSync(npm, ["config", "get", "registry"], {
      encoding: "utf8",
      shell: isWindows,
      stdio: "pipe",
    }).trim();
  } catch {
    throw new Error("npm does not say which registry it uses. Set npm_config_registry to the URL of an npm registry.");
  }
}
