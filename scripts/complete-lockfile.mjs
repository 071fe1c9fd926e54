#!/usr/bin/env node
// npm drops from package-lock.json every optional platform package that it could not look up while writing it (a mirror that lacks
// the Windows binaries, say), and `npm ci` then refuses the file. This adds what is missing, with the platform read from the
// package's name, so that the file installs everywhere. Run after `npm install`: node scripts/complete-lockfile.mjs
import { readFileSync, writeFileSync } from "node:fs";

const path = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));
const overrides = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).overrides ?? {};

const systems = {
  mac: "darwin",
  darwin: "darwin",
  win: "win32",
  win32: "win32",
  linux: "linux",
  android: "android",
  freebsd: "freebsd",
  openharmony: "openharmony",
};
const processors = {
  arm: "arm",
  armv7l: "arm",
  arm64: "arm64",
  x64: "x64",
  ia32: "ia32",
  riscv64: "riscv64",
  ppc64: "ppc64",
  s390x: "s390x",
};

function platform(name) {
  const parts = name.split("/").pop().split("-");
  const os = parts.map((part) => systems[part]).find(Boolean);
  const cpu = parts.map((part) => processors[part]).find(Boolean);
  if (os === undefined || cpu === undefined) return undefined;
  const libc = parts.includes("musl") ? "musl" : parts.some((part) => part.startsWith("gnu")) ? "glibc" : undefined;
  return { os: [os], cpu: [cpu], ...(libc && { libc: [libc] }) };
}

const added = [];
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || overrides[name] !== undefined || !/^\d/.test(version)) continue;
    const constraint = platform(name);
    if (constraint === undefined) continue;
    lock.packages[key] = { version, dev: entry.dev, ...constraint, optional: true };
    added.push(`${name}@${version}`);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(path, JSON.stringify(lock, null, 2) + "\n");
console.log(added.length === 0 ? "package-lock.json is complete" : `added ${added.length}: ${added.join(", ")}`);
