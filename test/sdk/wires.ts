import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { recordingFolders } from "../support/recordings.ts";
import { sdks } from "./compare.ts";
import { countRecordings, wiresPage } from "./wires-page.ts";
import type { WiresData } from "./wires-page.ts";

// Updates test/sdk/wires.json and docs/wires.md.
//
//   npm run wires
//
// Without ../shared/recordings, their numbers stay as they are. The days of releases come from the registry; those that are known already are
// not asked for.
const file = "test/sdk/wires.json";
const before = JSON.parse(readFileSync(file, "utf8")) as WiresData;
const released = Object.entries(sdks).map(([sdk, packages]) => {
  const versions = packages.map((name) => {
    const manifest = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")) as { version: string };
    return manifest.version;
  });
  return [sdk, Object.fromEntries(versions.map((version) => [version, releaseOf(sdk, version)]))] as const;
});
const data: WiresData = {
  sdks: Object.fromEntries(released),
  recordings: recordingFolders.length > 0 ? countRecordings() : before.recordings,
};
writeFileSync(file, `${JSON.stringify(data, null, 2)}\n`);
writeFileSync("docs/wires.md", wiresPage(data));

/** Returns the day of a release, as `2026-11-13`. */
function releaseOf(sdk: string, version: string): string {
  const known = before.sdks[sdk]?.[version];
  if (known !== undefined) return known;
  const times = JSON.parse(execFileSync("npm", ["view", sdk, "time", "--json"], { encoding: "utf8" })) as object;
  return String(new Map(Object.entries(times)).get(version)).slice(0, 10);
}
