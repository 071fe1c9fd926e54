import { bodyBombs } from "../../test/support/body-bombs.ts";
import type { Attack } from "./attack.ts";
import { ask, attackLocalModel } from "./local-model.ts";

/** Valid conversations that are read to their end, which takes a model seconds. */
const slow: ReadonlySet<string> = new Set([
  "10 MB of one control token",
  "18,000 messages",
  "25,000 parts",
  "4,000 tools",
  "Messages: 18,000 messages of one role",
]);

/**
 * Bodies that cost far more than their bytes. `test/http/body-bombs.test.ts` sends them to a gateway, and expects its answer, other
 * clients' answers meanwhile and little memory. So only each eighth, which that test does not try by day, is tried without `--all`: here, on a local model.
 */
export const attacks: readonly Attack[] = bodyBombs.map(({ name, make, path, told }, at) => ({
  name,
  slow: slow.has(name) || at % 8 !== 0,
  run: () =>
    attackLocalModel({
      attack: async (server, fail, signal) => {
        const { bytes, encoding } = make(server.model);
        const { status, text } = await ask(server, path, bytes, signal, encoding);
        if (status >= 500) fail(`it was answered ${status}: ${text.slice(0, 200)}`);
        if (told && !told.test(text)) fail(`the refusal does not name the cause: ${text.slice(0, 200)}`);
        return String(status);
      },
    }),
}));
