import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";

/** The manifests of `npm run manifests`, for archives that have the text "archive". */
const sha256 = "0eb3e36bfb24dcd9bb1d1bece1531216b59539a8fde17ee80224af0653c92aa3";
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const [forHomebrew, forWinget] = [`truewire-${version}.tgz`, `truewire-${version}-win32-x64.zip`];
let folder: string;
const write = (): string =>
  execFileSync(process.execPath, ["scripts/write-manifests.mjs", "https://example.com/releases/", folder], {
    encoding: "utf8",
  });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-manifests-"));
  for (const archive of [forHomebrew, forWinget]) writeFileSync(join(folder, archive), "archive");
  expect(write().trim().split("\n")).toHaveLength(4);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("Homebrew's formula names the package and its hash, and is Ruby", ({ skip }) => {
  const formula = readFileSync(join(folder, "truewire.rb"), "utf8");
  expect(formula).toMatch(/^class Truewire < Formula\n/);
  expect(formula).toContain(`url "https://example.com/releases/${forHomebrew}"\n  sha256 "${sha256}"\n`);
  if (spawnSync("ruby", ["--version"]).error) {
    console.log("skipped: ruby is not installed, which checks the formula's syntax");
    return skip();
  }
  expect(execFileSync("ruby", ["-c", join(folder, "truewire.rb")], { encoding: "utf8" })).toBe("Syntax OK\n");
});

/** The members that winget requires, and its limits for those that are set: manifest.*.1.9.0.json of microsoft/winget-cli. */
const common = {
  PackageIdentifier: z.string().regex(/^[^.\s\\/:*?"<>|]{1,32}\.[^.\s\\/:*?"<>|]{1,32}$/),
  PackageVersion: z.literal(version),
  ManifestVersion: z.literal("1.9.0"),
};
const schemas = {
  "": z.strictObject({ ...common, DefaultLocale: z.literal("en-US"), ManifestType: z.literal("version") }),
  ".locale.en-US": z.strictObject({
    ...common,
    PackageLocale: z.literal("en-US"),
    Publisher: z.string().min(2).max(256),
    PackageName: z.string().min(2).max(256),
    PackageUrl: z.url({ protocol: /^https$/ }),
    License: z.string().min(3).max(512),
    ShortDescription: z.string().min(3).max(256),
    Tags: z.array(z.string().min(1).max(40)).max(16),
    ManifestType: z.literal("defaultLocale"),
  }),
  ".installer": z.strictObject({
    ...common,
    InstallerType: z.literal("zip"),
    NestedInstallerType: z.literal("portable"),
    NestedInstallerFiles: z.tuple([
      z.strictObject({ RelativeFilePath: z.literal(`truewire-${version}-win32-x64\\truewire.cmd`) }),
    ]),
    ArchiveBinariesDependOnPath: z.literal(true),
    Commands: z.tuple([z.literal("truewire")]),
    Installers: z.tuple([
      z.strictObject({
        Architecture: z.enum(["x86", "x64", "arm", "arm64", "neutral"]),
        InstallerUrl: z.literal(`https://example.com/releases/${forWinget}`),
        InstallerSha256: z.literal(sha256),
      }),
    ]),
    ManifestType: z.literal("installer"),
  }),
};

test.each(Object.entries(schemas))(
  "winget's manifest Truewire.Truewire%s.yaml has what winget requires",
  (name, schema) => {
    const manifest: unknown = parse(readFileSync(join(folder, `Truewire.Truewire${name}.yaml`), "utf8"));
    expect(schema.safeParse(manifest).error?.message).toBeUndefined();
  },
);

test("without an archive or a URL: which are expected", () => {
  const run = (...args: string[]): string =>
    spawnSync(process.execPath, ["scripts/write-manifests.mjs", ...args], { encoding: "utf8" }).stderr;
  expect(run()).toContain("Expected the URL");
  expect(run("https://example.com", join(folder, "none"))).toContain("Run: npm pack");
});
