import { readdirSync } from "node:fs";
import { loseConnections } from "../../test/support/rough-clients.ts";
import type { Attack } from "./attack.ts";
import { attackLocalModel, type AttackedServer } from "./local-model.ts";

/** Connections that are lost in every way: descriptors and requests that stay open are counted. */
export const attacks: readonly Attack[] = [lost(400), { ...lost(20_000), slow: true }];

function lost(count: number): Attack {
  return {
    name: `${count.toLocaleString("en")} connections lost in every way`,
    run: () =>
      attackLocalModel({
        occupiesSlots: true,
        attack: async (server, fail, signal) => {
          const messages = [{ role: "user", content: "#endless" }];
          const before = descriptors(server);
          await loseConnections(server.url, count, { model: server.model, messages, max_tokens: 200 });
          // Two requests stay open: the stream of the other client, and the probe that asks.
          while ((await openRequests(server)) > 2) {
            signal.throwIfAborted();
            await new Promise((resume) => setTimeout(resume, 50));
          }
          const left = descriptors(server) - before;
          if (left > 8) fail(`${left} file descriptors stayed open`);
          return `nothing stays open, ${Math.max(0, left)} more file descriptors`;
        },
      }),
  };
}

function descriptors({ pid }: AttackedServer): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

async function openRequests({ url }: AttackedServer): Promise<number> {
  const health = (await (await fetch(`${url}/health`)).json()) as { readonly requests: { readonly open: number } };
  return health.requests.open - 1;
}
