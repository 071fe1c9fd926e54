import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import koffi from "koffi";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { findDriver } from "../../src/engines/llama/libraries/drivers.ts";
import { libraryFolders } from "../../src/engines/llama/libraries/library-folders.ts";
import { drive, openBuilt, openProgrammed } from "./local-engine.ts";

// Mesa's software device, which llama.cpp leaves out unless it is named, is a GPU here. To run these: apt-get install mesa-vulkan-drivers,
// truewire libraries install vulkan.
const before = { ...process.env };
process.env["GGML_VK_VISIBLE_DEVICES"] ??= "0";
// With Mesa 22.3, a thread of the driver crashes now and then without this.
process.env["GGML_VK_DISABLE_ASYNC"] ??= "1";
const missing = !libraryFolders(true).some(({ backend }) => backend === "vulkan")
  ? "llama.cpp's build for Vulkan is not installed (truewire libraries install vulkan)"
  : findDriver(koffi, "vulkan").fits
    ? undefined
    : "this machine has no device of Vulkan";
if (missing !== undefined) console.log(`skipped: ${missing}`);

describe.skipIf(missing !== undefined)("a model on a device of Vulkan", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "truewire-"));
  });
  afterAll(() => {
    process.env = before;
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(() => {
    delete process.env["LD_PRELOAD"];
    delete process.env["LOSE_DEVICE"];
    delete process.env["GGML_VK_FORCE_MAX_BUFFER_SIZE"];
  });

  // Files of builds for GPUs are named libllama.vulkan.v0.5.0.so, and were not found: every installed GPU build failed to load.
  test("all layers are on it, and the greedy text is that of the processor", async () => {
    const texts: string[] = [];
    for (const gpu of ["auto", "off"] as const) {
      const engine = await openBuilt({ model: resolve("models/demo/demo.gguf"), gpu, contextSize: 512 });
      expect(engine.models()[0]?.device).toMatch(gpu === "auto" ? /^GPU .*, (\d+) of \1 layers$/ : /^CPU: gpu is off$/);
      const { choices } = await drive(engine).chat("What is the capital of France?", { limits: { maxTokens: 16 } });
      texts.push(choices[0]?.text ?? "");
      await engine.close(0);
    }
    expect(texts).toEqual(["The capital of France is Paris.", "The capital of France is Paris."]);
  });

  test("a model that does not fit into its memory is loaded for the processor, and says why", async () => {
    process.env["GGML_VK_FORCE_MAX_BUFFER_SIZE"] = "1000";
    const own = await openProgrammed({ gpu: "auto" });
    expect(own.engine.models()[0]?.device).toMatch(/^CPU: it cannot be loaded on .* \(.+\)$/);
    expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
    await own.close();
  });

  const noCompiler = spawnSync("gcc", ["--version"]).error !== undefined || process.platform !== "linux";
  if (noCompiler) console.log("skipped: a lost device is imitated by a library, which needs a C compiler on Linux");
  test.skipIf(noCompiler)(
    "a device that is lost: the model is tried on it again, then goes on with the processor",
    async () => {
      const library = join(folder, "lose-device.so");
      execFileSync("gcc", ["-shared", "-fPIC", "-o", library, "test/fixtures/lose-device.c", "-ldl"]);
      const lost = join(folder, "lost");
      Object.assign(process.env, { LD_PRELOAD: library, LOSE_DEVICE: lost });

      const own = await openProgrammed({ gpu: "auto" });
      expect(own.engine.models()[0]?.device).toMatch(/^GPU /);
      expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
      writeFileSync(lost, "");
      expect((await own.chat("#plain")).end).toMatchObject({ kind: "engine-error" });
      // The request waits for the restart: on the device, which fails again, then on the processor.
      expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
      expect(own.engine.models()[0]?.device).toMatch(
        /^CPU: (its process crashed on the GPU|it cannot be loaded on .*lost)/,
      );
      await own.close();
    },
  );
});
