import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type { PageFile, PageFiles } from "../server/service.ts";

const folder = new URL("../page/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  svg: "image/svg+xml",
};

/** Reads the files of the built page; `undefined` if the sources run without a build, as in tests. */
export async function readPage(): Promise<PageFiles | undefined> {
  const names: readonly string[] = await readdir(folder).catch(() => []);
  if (!names.includes("page.js")) return undefined;
  const files = await Promise.all(
    names.flatMap((name) => {
      const contentType = types[name.slice(name.lastIndexOf(".") + 1)];
      return contentType === undefined ? [] : [readPageFile(name, contentType)];
    }),
  );
  return new Map(files);
}

async function readPageFile(name: string, contentType: string): Promise<[string, PageFile]> {
  const text = await readFile(new URL(name, folder), "utf8");
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  return [name, { contentType, text, etag }];
}
