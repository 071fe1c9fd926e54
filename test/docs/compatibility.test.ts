import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { knownServers } from "../../src/serve/cli/known-servers.ts";

const results = "interop/results";

/** `doctor` named no version that had been tested, so a reader did not know whether docs/compatibility.md was about his server. */
test("doctor names the versions of docs/compatibility.md", () => {
  const files = readdirSync(results).filter((file) => file.endsWith(".json"));
  const met = files.map((file) => JSON.parse(readFileSync(`${results}/${file}`, "utf8")) as Record<string, string>);
  const known = knownServers.filter(({ name }) => met.some(({ server }) => server === name));
  expect(known.length).toBeGreaterThan(3);
  const versions = Object.fromEntries(met.map(({ server = "", version }) => [server, version]));
  expect(knownServers.filter(({ name, tested }) => tested !== versions[name])).toEqual([]);
});
