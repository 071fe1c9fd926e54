import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { buildsFor, buildVersion, integrity } from "./builds.ts";
import { dataFolder } from "./library-folders.ts";

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version: string; readonly integrity?: string; readonly optionalDependencies?: object }>
  >;
}
const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;

test("the version and the hashes are those of the lock file", () => {
  expect(packages["node_modules/node-llama-cpp"]?.version).toBe(buildVersion);
  const locked = Object.entries(packages).flatMap(([path, { version, integrity: hash }]) => {
    const name = path.split("node_modules/@node-llama-cpp/")[1];
    return name !== undefined && version === buildVersion && hash !== undefined ? [[name, hash] as const] : [];
  });
  expect(locked.length).toBeGreaterThan(2);
  expect(integrity).toMatchObject(Object.fromEntries(locked));
});

test("every build is a package of node-llama-cpp, and every package is in a build", () => {
  const platforms = [
    ["linux", "x64"],
    ["linux", "arm64"],
    ["linux", "arm"],
    ["linux", "riscv64"],
    ["darwin", "arm64"],
    ["darwin", "x64"],
    ["win32", "x64"],
    ["win32", "arm64"],
  ] as const;
  const names = platforms.flatMap(([platform, arch]) => buildsFor(platform, arch).flatMap((build) => build.packages));
  const optional = Object.keys(packages["node_modules/node-llama-cpp"]?.optionalDependencies ?? {});
  expect(names.map((name) => `@node-llama-cpp/${name}`).toSorted()).toEqual(optional.toSorted());
  expect(buildsFor("linux", "s390x")).toEqual([]);
  expect(buildsFor("aix", "x64")).toEqual([]);
});

test("the folder for data: of the system, and what the environment names", () => {
  expect(dataFolder("linux", {}, "/home/ann")).toBe("/home/ann/.local/share/truewire");
  expect(dataFolder("linux", { XDG_DATA_HOME: "/data" }, "/home/ann")).toBe("/data/truewire");
  expect(dataFolder("darwin", {}, "/Users/ann")).toBe("/Users/ann/Library/Application Support/truewire");
  // `join` has this machine's separator.
  expect(dataFolder("win32", { LOCALAPPDATA: "C:\\Users\\ann\\AppData\\Local" }, "C:\\Users\\ann")).toMatch(
    /^C:\\Users\\ann\\AppData\\Local[\\/]truewire$/,
  );
});
