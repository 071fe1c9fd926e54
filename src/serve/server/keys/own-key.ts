import { SentKey } from "../../../wire/core/client-key.ts";
import { missingApiKey } from "../../../wire/apis/failures.ts";
import type { ServedEngine } from "../model-directory.ts";
import type { Reply } from "../reply.ts";
import { type Client, hashOf } from "./key-ring.ts";

/* Clients with keys of their own at an upstream (`passKey`). Truewire knows such a client by the hash of its key. */

/** The client of a key that this server cannot check. */
export async function strangersOf(key: string): Promise<Client> {
  return { owner: `key ${(await hashOf(key)).slice(0, 32)}` };
}

/** Takes the key of the request for its upstream, whose limits then hold for the key. Throws `FailureError` 401 without a key. */
export function takeOwnKey(reply: Reply, { passKey }: ServedEngine): void {
  const { caller, key, exchange, record } = reply;
  if (!passKey) return;
  if (!caller.client || key === "") throw missingApiKey();
  const others = exchange.header("x-api-key") ?? exchange.header("x-goog-api-key");
  const isBearer = others === undefined && /^bearer\s/i.test(exchange.header("authorization") ?? "");
  reply.identify({
    ...caller,
    client: { ...caller.client, ...(passKey.limits && { limits: passKey.limits }) },
    ownKey: new SentKey(key, isBearer, record.asked.api?.name),
  });
  reply.hide(key);
}
