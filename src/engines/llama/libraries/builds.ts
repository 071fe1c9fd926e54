/** What a build of llama.cpp computes on. */
export type Backend = "cpu" | "cuda" | "vulkan" | "metal";

/** A build of llama.cpp, from node-llama-cpp's packages for a platform. */
export interface Build {
  readonly backend: Backend;
  /** In the scope `@node-llama-cpp`: the package with the libraries, then those with more backends. */
  readonly packages: readonly string[];
}

/** The version of node-llama-cpp whose builds are of the llama.cpp that `structs.ts` declares. */
export const buildVersion = "3.22.1";

/** The builds for a platform, the fastest first; none for a platform that node-llama-cpp has no build for. */
export function buildsFor(platform: NodeJS.Platform, arch: string): readonly Build[] {
  const of = (backend: Backend, ...packages: string[]): Build => ({ backend, packages });
  if (platform === "darwin") return [arch === "arm64" ? of("metal", "mac-arm64-metal") : of("cpu", "mac-x64")];
  const system = { win32: "win", linux: "linux" }[platform as string];
  const processor = { x64: "x64", arm64: "arm64", arm: "armv7l", riscv64: "riscv64" }[arch];
  if (system === undefined || processor === undefined) return [];
  const plain = `${system}-${processor}`;
  const forGpus = [of("cuda", `${plain}-cuda`, `${plain}-cuda-ext`), of("vulkan", `${plain}-vulkan`)];
  return [...(arch === "x64" ? forGpus : []), of("cpu", plain)];
}

/**
 * The hashes of packages, in npm's form, from the registry on 2026-11-30. The packages of other platforms were not in the registry that this
 * was written with: for them, the hash that the configured registry names is used.
 */
export const integrity: Readonly<Record<string, string>> = {
  "linux-x64": "sha512-5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==",
  "linux-x64-vulkan": "sha512-bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg==",
  "linux-x64-cuda": "sha512-8rQCjyNNLZJUFit+YpjwlC4hwkKgOMIkB2wuycKBf8NU2O3ySKbiWZQ8aw9ku2nUTXjSnUIrE6KB88itduTBuA==",
  "linux-x64-cuda-ext":
    "sha512-4e5ajkiM2aR2WAdB/N/ACk4weEhHvOAIrzxZPsIX0xDFW5+6hhShuy1/vs88SK9NGdgAco9IyE28eYS0H1efpA==",
  "linux-arm64": "sha512-W+7naKCXX9/eEjjFmRS8vvx91QyLXDbeFxexZc3bh/PtQABZgmRL3C0AtYYXn4YGTj/3Qor4lWZn2tpjZFPLdQ==",
  "linux-armv7l": "sha512-v/pHg4BcQHRDna+YYq4vWp44HCFluar4hAiB732Pa5PF89flMXhHSku68tQn+25RJjuc3TtoeY/i57WnX9GrdQ==",
};
