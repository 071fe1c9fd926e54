import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { command, nodePackages } from "../place.ts";
import { sourceOf } from "./suite.ts";
import type { Suite, SuiteCase } from "./suite.ts";

const source = sourceOf("openresponses/openresponses", "92c12d96d7b61d6d15e2214daa5e9c6000ab6e1c", "2026-07-15");
/** It runs with Bun, of which it uses WebSockets with headers; here `ws` does that. */
const packages = nodePackages("open-responses");

interface Output {
  readonly results: readonly { id: string; status: string; errors?: readonly string[] }[];
}

/** The compliance tests of the Open Responses specification. */
export const openResponses: Suite = {
  id: "open-responses",
  name: "Open Responses' compliance tests",
  from: "github openresponses/openresponses",
  reasons: [],
  version: () => (packages.version("esbuild") === undefined ? undefined : source.version()),
  async install() {
    await source.install();
    await packages.install("zod@3.25.76", "ws@8.22.0", "esbuild@0.28.2");
    const start = join(source.folder, "bin/with-ws.ts");
    writeFileSync(
      start,
      `import { WebSocket } from "ws";\nglobalThis.WebSocket = WebSocket as never;\nawait import("./compliance-test");\n`,
    );
    await command(
      packages.program("esbuild"),
      [start, "--bundle", "--platform=node", "--format=esm", "--packages=external", `--outfile=${bundle}`],
      { env: { NODE_PATH: packages.modules } },
    );
  },
  async run({ url, capable }) {
    const args = [bundle, "--base-url", `${url}/v1`, "--api-key", "none", "--model", capable, "--json"];
    const shell = ["-c", 'node "$@" || [ $? -eq 1 ]', "sh", ...args];
    const { results } = JSON.parse(await command("sh", shell)) as Output;
    return results.map(({ id, status, errors = [] }): SuiteCase => ({
      name: id,
      outcome: status === "passed" || status === "skipped" ? status : "failed",
      detail: errors.join("; "),
    }));
  },
};

const bundle = join(packages.modules, "..", "compliance-test.mjs");
