#!/usr/bin/env node
// node scripts/bundle.mjs [folder]
//
// Writes truewire-VERSION-PLATFORM-ARCH.tgz (on Windows .zip) into the folder (default: this one): an archive for this platform with everything
// that Truewire needs, for machines without Node and npm. It holds the Node that runs this script, what `npm pack` publishes, the packages that it needs
// at run time with their native libraries, and a launcher. Single-file executables of Node do not carry native libraries.
//
// The same Node, lock file and sources give the same bytes: files are sorted, and have one time, one owner and two modes, as in `npm pack`.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "tar";

const root = fileURLToPath(new URL("..", import.meta.url));
const { name, version, dependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const isWindows = process.platform === "win32";
const title = `${name}-${version}-${process.platform}-${process.arch}`;
const archive = resolve(process.argv[2] ?? ".", `${title}.${isWindows ? "zip" : "tgz"}`);
/** The packages with the libraries of llama.cpp for this platform. */
const platform = { darwin: "mac", win32: "win" }[process.platform] ?? process.platform;
const variantOf = new RegExp(`^@node-llama-cpp/${platform}-${process.arch === "arm" ? "armv7l" : process.arch}(-|$)`);
/** The time of every file, as `npm pack` sets it. */
const mtime = new Date("1985-10-26T08:15:00.000Z");

if (process.config.variables.node_shared) {
  console.error(
    "This Node is a program around a shared library (libnode), which other machines do not have. Run this with a Node from nodejs.org.",
  );
  process.exit(1);
}

const stage = mkdtempSync(join(tmpdir(), "truewire-bundle-"));
try {
  const top = join(stage, title);
  copyOwnFiles(join(top, "lib"));
  const packages = neededPackages();
  for (const folder of packages) copyPackage(folder, join(top, "lib", relative(root, folder)));
  copyNode(top);
  writeLauncher(top);
  const files = filesIn(top);
  for (const file of files) chmodSync(join(stage, file), isExecutable(file) ? 0o755 : 0o644);
  mkdirSync(dirname(archive), { recursive: true });
  if (isWindows) zip();
  else await create({ cwd: stage, file: archive, gzip: true, portable: true, mtime, noDirRecurse: true }, files);
  const sha256 = createHash("sha256").update(readFileSync(archive)).digest("hex");
  const unpacked = files.reduce((sum, file) => sum + statSync(join(stage, file)).size, 0);
  console.log(`${archive}`);
  console.log(
    `${megabytes(statSync(archive).size)} MB (unpacked ${megabytes(unpacked)} MB): Node ${process.versions.node}, ${packages.length} packages, ${files.length} files`,
  );
  console.log(`sha256 ${sha256}`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** Packs the folder with Windows' own tar, which writes zip files by the name of the archive. */
function zip() {
  const tar = join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "tar.exe");
  execFileSync(tar, ["-a", "-c", "-f", archive, title], { cwd: stage });
}

/** Copies what `npm pack` publishes. */
function copyOwnFiles(to) {
  const options = {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 2 ** 20,
    shell: isWindows,
    stdio: ["ignore", "pipe", "ignore"],
  };
  const [{ files }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], options));
  if (!files.some(({ path }) => path === "dist/cli/main.js")) throw new Error("There is no build. Run: npm run build");
  for (const { path } of files) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    copyFileSync(join(root, path), join(to, path));
  }
}

/** The folders of the packages that Truewire needs at run time on this platform: its dependencies and node-llama-cpp, with theirs. */
function neededPackages() {
  const found = new Set();
  const add = (package_, from, isOptional) => {
    const folder = folderOf(package_, from);
    if (folder === undefined) {
      if (isOptional) return;
      throw new Error(`${package_}, which ${relative(root, from) || name} needs, is not installed. Run: npm ci`);
    }
    if (found.has(folder)) return;
    const { os, cpu, ...own } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (!fits(os, process.platform) || !fits(cpu, process.arch)) return;
    // Its packages declare the platforms that they can be installed on, not only those that they run on.
    if (package_.startsWith("@node-llama-cpp/") && !variantOf.test(package_)) return;
    // Stands for the libraries of a GPU, which this repository does not install.
    if (own.name === "empty-npm-package") return;
    found.add(folder);
    const optional = own.optionalDependencies ?? {};
    for (const each of Object.keys(optional)) add(each, folder, true);
    for (const each of Object.keys(own.dependencies ?? {})) if (!(each in optional)) add(each, folder, false);
  };
  for (const each of Object.keys(dependencies)) add(each, root, false);
  for (const each of Object.keys(optionalDependencies)) add(each, root, true);
  add("node-llama-cpp", root, false);
  return [...found].toSorted();
}

/** The folder of a package, as Node finds it from another folder. */
function folderOf(package_, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", package_);
    if (existsSync(join(candidate, "package.json"))) return candidate;
    if (relative(root, folder) === "") return undefined;
  }
}

/** Whether a package's `os` or `cpu` allows a value: `["linux"]`, `["!win32"]`, or absent. */
function fits(allowed, value) {
  if (allowed === undefined) return true;
  return allowed.includes(value) || (allowed.every((entry) => entry.startsWith("!")) && !allowed.includes(`!${value}`));
}

/** Copies a package without its own node_modules, its declarations and source maps, and llama.cpp's history of commits. */
function copyPackage(from, to) {
  const isUseless = /\.d\.[cm]?ts$|\.map$|[/\\]gitRelease\.bundle$/;
  cpSync(from, to, {
    recursive: true,
    dereference: true,
    filter: (path) => !isUseless.test(path) && !relative(from, path).split(/[/\\]/).includes("node_modules"),
  });
}

function copyNode(to) {
  const binary = process.execPath;
  mkdirSync(join(to, "bin"), { recursive: true });
  copyFileSync(binary, join(to, "bin", isWindows ? "node.exe" : "node"));
  const prefix = dirname(dirname(binary));
  const licences = [
    join(prefix, "LICENSE"),
    join(dirname(binary), "LICENSE"),
    join(prefix, "share/doc/nodejs/LICENSE"),
    join(prefix, "share/doc/node/LICENSE"),
  ];
  const licence = licences.find((path) => existsSync(path));
  if (licence === undefined)
    console.error(`No licence of Node was found near ${binary}. Add it before you give the archive to others.`);
  else copyFileSync(licence, join(to, "bin", "LICENSE.node"));
}

/** Writes the launcher. It needs nothing of the PATH, but `ls` where it is called by a link. */
function writeLauncher(to) {
  const sh = `#!/bin/sh
self=$0
while [ -h "$self" ]; do
  link=$(ls -ld "$self")
  link=\${link##* -> }
  case $link in
    /*) self=$link ;;
    *) self=\${self%/*}/$link ;;
  esac
done
case $self in
  */*) here=\${self%/*} ;;
  *) here=. ;;
esac
exec "$here/bin/node" "$here/lib/dist/cli/main.js" "$@"
`;
  if (isWindows) writeFileSync(join(to, "truewire.cmd"), '@"%~dp0bin\\node.exe" "%~dp0lib\\dist\\cli\\main.js" %*\r\n');
  else writeFileSync(join(to, "truewire"), sh);
}

/** All files in a folder, by their paths from the stage, sorted. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(stage, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .toSorted();
}

function isExecutable(file) {
  return [`${title}/truewire`, `${title}/bin/node`, `${title}/bin/node.exe`].includes(file);
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}
