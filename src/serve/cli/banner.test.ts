import { expect, test } from "vitest";
import { bannerOf, noteOfFiles, noteOfNode } from "./banner.ts";

test("Node 20 gets one line on what Node 24 would give; newer ones get none", () => {
  expect(noteOfNode("20.19.0")).toEqual([expect.stringMatching(/^Node 20\.19\.0 has had no security fixes/)]);
  expect(noteOfNode("22.15.0")).toEqual([]);
  expect(noteOfNode("24.21.0")).toEqual([]);
});

// cmd.exe and PowerShell read the single quotes of the line as other arguments.
test("Windows gets no line for a POSIX shell", () => {
  const server = {
    url: "http://127.0.0.1:8080",
    models: () => [{ id: "m", created: 0, ownedBy: "x", endpoints: ["chat"] }],
  };
  const banner = (platform: NodeJS.Platform): string =>
    bannerOf(server as never, { models: ["localhost:8000"] }, false, [], [], [], platform);
  expect(banner("linux")).toContain("curl -N");
  expect(banner("win32")).not.toContain("curl");
});

test("GGUF files of the folder are named, with the command that serves them", () => {
  expect(noteOfFiles([])).toEqual([]);
  expect(noteOfFiles(["m.gguf"])).toEqual(["m.gguf is in this folder, and is not served: truewire serve m.gguf"]);
  expect(noteOfFiles(["my model.gguf"])[0]).toMatch(/truewire serve 'my model.gguf'$/);
  expect(noteOfFiles(["a.gguf", "b.gguf"])).toEqual([
    "2 GGUF files are in this folder, and are not served: truewire serve .",
  ]);
});
