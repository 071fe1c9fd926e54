/**
 * Runs the local engine's tests over a llama.cpp that is built with AddressSanitizer and UndefinedBehaviorSanitizer, and reports what they
 * found. Linux with CMake and GCC only. The source is to be of the version that node-llama-cpp's packages have (`libllama.so`'s name says
 * which); it is built once.
 *
 *     node scripts/sanitize.mjs LLAMA_CPP_SOURCE [TEST FILES]
 *
 * The tests of `other-libraries` are left out, which replace the libraries. Expected to fail: the four that compare memory with what it is
 * without a sanitizer, or the log with that of ready-made libraries.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const [source, ...files] = process.argv.slice(2);
if (source === undefined) {
  console.error(
    "The folder with llama.cpp's source is missing: node scripts/sanitize.mjs LLAMA_CPP_SOURCE [TEST FILES]",
  );
  process.exit(2);
}
const root = resolve(import.meta.dirname, "..");
const folder = join(root, ".cache/sanitized");
const [build, tree, reports] = ["build", "tree", "reports"].map((name) => join(folder, name));
const run = (command, ...args) => execFileSync(command, args, { stdio: "inherit", cwd: tree });

for (const old of [tree, reports]) rmSync(old, { recursive: true, force: true });
for (const made of [build, tree, reports]) mkdirSync(made, { recursive: true });

// koffi calls on a stack of its own, of which the sanitizer knows nothing: stacks are left out, or every exception would be accused.
const flags = "-O1 -g1 -fno-omit-frame-pointer --param asan-stack=0";
const off = ["TESTS", "EXAMPLES", "TOOLS", "SERVER", "COMMON"].map((part) => `-DLLAMA_BUILD_${part}=OFF`);
const sanitizers = [
  "-DLLAMA_SANITIZE_ADDRESS=ON",
  "-DLLAMA_SANITIZE_UNDEFINED=ON",
  "-DGGML_OPENMP=OFF",
  "-DLLAMA_CURL=OFF",
];
const compiled = ["C", "CXX"].map((language) => `-DCMAKE_${language}_FLAGS=${flags}`);
run(
  "cmake",
  "-S",
  resolve(source),
  "-B",
  build,
  "-DCMAKE_BUILD_TYPE=Sanitized",
  "-DBUILD_SHARED_LIBS=ON",
  ...sanitizers,
  ...off,
  ...compiled,
);
run("cmake", "--build", build, "--target", "llama", "--parallel");

// The tests find llama.cpp next to the file that loads it, so they run in a copy of this tree.
const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
for (const file of tracked) {
  mkdirSync(dirname(join(tree, file)), { recursive: true });
  copyFileSync(join(root, file), join(tree, file));
}
const modules = join(tree, "node_modules");
mkdirSync(modules);
for (const name of readdirSync(join(root, "node_modules"))) {
  const from = join(root, "node_modules", name);
  if (name.includes("node-llama-cpp")) cpSync(from, join(modules, name), { recursive: true });
  else symlinkSync(from, join(modules, name));
}
const platform = `linux-${process.arch}`;
const libraries = join(modules, "@node-llama-cpp", platform, "bins", platform);
for (const name of readdirSync(libraries)) if (name.endsWith(".so")) rmSync(join(libraries, name));
for (const name of ["ggml-base", "ggml-cpu", "ggml", "llama"])
  cpSync(join(build, "bin", `lib${name}.so`), join(libraries, `lib${name}.so`), { dereference: true });
run("npm", "run", "build");

const runtime = (name) => execFileSync("gcc", [`-print-file-name=lib${name}.so`], { encoding: "utf8" }).trim();
const tests = files.length > 0 ? files : ["test/engine"];
const patience = ["--testTimeout", "1200000", "--hookTimeout", "300000"];
const { status } = spawnSync("npx", ["vitest", "run", "--exclude", "**/other-libraries*", ...tests, ...patience], {
  stdio: "inherit",
  cwd: tree,
  env: {
    ...process.env,
    LD_PRELOAD: `${runtime("asan")} ${runtime("ubsan")}`,
    ASAN_OPTIONS: `detect_leaks=0:detect_odr_violation=0:log_path=${join(reports, "address")}`,
    UBSAN_OPTIONS: `print_stacktrace=1:log_path=${join(reports, "undefined")}`,
  },
});
const texts = readdirSync(reports).map((name) => readFileSync(join(reports, name), "utf8"));
const found = texts.filter((text) => /ERROR: AddressSanitizer|runtime error/.test(text));
for (const text of found) console.log(text);
console.log(`${found.length} processes of which a sanitizer complained`);
process.exit(found.length > 0 ? 1 : (status ?? 1));
