import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "../../src/serve/app/create-server.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startScripted, type ScriptedServer } from "../upstream/scripted-server.ts";
import { startTruewire } from "./serve.ts";

/** A local model, and a gateway to a server of the chat API: two sources of the same answers. */
export interface LocalAndChat {
  /** The URL of the server that has the model. */
  readonly url: Readonly<Record<"local" | "chat", string>>;
  /** The server of the model `chat`. */
  readonly upstream: ScriptedServer;
  close(): Promise<void>;
}

/** `contextSize`: of the local model, in tokens. `answer`: how the chat server answers. */
export async function startLocalAndChat(
  contextSize: number,
  answer: Parameters<typeof startScripted>[0],
): Promise<LocalAndChat> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  const path = join(folder, "local.gguf");
  writeProgrammedModel(path, { contextLength: contextSize });
  const upstream = await startScripted(answer);
  const sizes = ["--context-size", String(contextSize), "--slots", "1", "--threads", "1", "--gpu", "off"];
  const local = await startTruewire([path, ...sizes]);
  const models = [{ kind: "upstream" as const, url: upstream.url, models: { chat: "m" } }];
  const gateway = await createServer({ port: 0, logLevel: "silent", models });
  return {
    url: { local: local.url, chat: gateway.url },
    upstream,
    async close() {
      await local.stop();
      await gateway.close(0);
      await upstream.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
