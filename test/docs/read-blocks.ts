import { spawnSync } from "node:child_process";

/** A fenced block of a Markdown file. */
export interface Block {
  readonly file: string;
  /** Of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** From `<!-- skip: reason -->` above it, with or without an empty line between, or where the command of `<!-- needs: command -->` is not on the PATH. */
  readonly skip: string | undefined;
}

/** The fenced blocks of a Markdown text, in their order. */
export function readBlocks(file: string, markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const fence = /^```(\w*)\s*$/.exec(lines[at] ?? "");
    if (!fence) continue;
    const end = lines.indexOf("```", at + 1);
    if (end === -1) throw new Error(`${file}:${at + 1}: the block has no end`);
    const [, language = ""] = fence;
    const [, note, what = ""] = /^<!-- (skip|needs): (.+) -->$/.exec(lines[at - 1] || (lines[at - 2] ?? "")) ?? [];
    const skip = note === "needs" ? missing(what) : note && what;
    blocks.push({ file, line: at + 1, language, text: lines.slice(at + 1, end).join("\n"), skip });
    at = end;
  }
  return blocks;
}

function missing(command: string): string | undefined {
  return spawnSync("sh", ["-c", `command -v ${command}`]).status === 0 ? undefined : `${command} is not on the PATH`;
}
