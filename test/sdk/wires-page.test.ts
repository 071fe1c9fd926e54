import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { hasRecordings } from "../support/recordings.ts";
import { sdks } from "./compare.ts";
import { countRecordings, wiresPage } from "./wires-page.ts";
import type { WiresData } from "./wires-page.ts";

// docs/wires.md is generated: `npm run wires` writes it anew.
const data = JSON.parse(readFileSync(new URL("wires.json", import.meta.url), "utf8")) as WiresData;

test("docs/wires.md says what the schemas, the gaps and the numbers say", () => {
  expect(readFileSync("docs/wires.md", "utf8")).toBe(wiresPage(data));
});

test("the numbers are about the versions that are installed", () => {
  for (const [sdk, packages] of Object.entries(sdks)) {
    const versions = packages.map((name) => {
      const manifest = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")) as { version: string };
      return manifest.version;
    });
    expect([sdk, Object.keys(data.sdks[sdk] ?? {})]).toEqual([sdk, versions]);
  }
});

test.skipIf(!hasRecordings("to count"))("the numbers of recordings are those of ../shared", () => {
  expect(countRecordings()).toEqual(data.recordings);
});
