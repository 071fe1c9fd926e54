import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ProgramMessage, ProgramTool } from "../../src/wire/apis/chat/request-types.ts";
import type { ProgramEvent } from "../../src/wire/apis/chat/program.ts";
import { startTruewire } from "./serve.ts";
import type { RunningTruewire } from "./serve.ts";

/** What a scripted model says or does in a turn; `wait`: milliseconds; `fail`: it throws an error with this message and these members. */
export type TurnItem =
  | string
  | ProgramEvent
  | { readonly wait: number }
  | { readonly fail: string; readonly error?: Readonly<Record<string, unknown>> };

/** What a program was asked. */
export interface Asked {
  readonly model: string;
  readonly messages: readonly ProgramMessage[];
  readonly tools?: readonly ProgramTool[];
  readonly options: Readonly<Record<string, unknown>>;
}

export interface TurnsServer extends RunningTruewire {
  readonly baseURL: string;
  /** All that the model was asked, in order. */
  asked(): readonly Asked[];
  close(): Promise<void>;
}

/** `truewire serve` on a program, named "scripted", whose answer to a conversation with n turns of its own is the turn n. */
export async function serveTurns(turns: readonly (readonly TurnItem[])[], ...args: string[]): Promise<TurnsServer> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-turns-"));
  const log = join(folder, "asked.jsonl");
  const program = `scripted=${resolve("test/fixtures/turns-program.js")}`;
  const server = await startTruewire([program, ...args], { env: { TURNS: JSON.stringify(turns), ASKED: log } });
  return {
    ...server,
    baseURL: `${server.url}/v1`,
    asked() {
      if (!existsSync(log)) return [];
      const lines = readFileSync(log, "utf8").trimEnd().split("\n");
      return lines.map((line) => JSON.parse(line) as Asked);
    },
    async close() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
