import { grammarBombs } from "../../test/support/grammar-bombs.ts";
import type { Attack } from "./attack.ts";
import { ask, attackLocalModel, chatRequest } from "./local-model.ts";

/**
 * Grammars, patterns and schemas that take time without an end to follow. `test/engine/grammar-bombs.test.ts` sends each of them to a model
 * that answers another client. So only each eighth is tried without `--all`: here, the memory is measured, too.
 */
export const attacks: readonly Attack[] = grammarBombs.map(({ name, make, told }, at) => ({
  name,
  slow: at % 8 !== 0,
  run: () =>
    attackLocalModel({
      demo: true,
      attack: async (server, fail, signal) => {
        const { status, text } = await ask(server, "/v1/chat/completions", chatRequest(server, make()), signal);
        if (status !== 200 && status !== 400) fail(`it was answered ${status}: ${text.slice(0, 200)}`);
        if (told && !told.message.test(text)) fail(`the refusal does not name the cause: ${text.slice(0, 200)}`);
        return String(status);
      },
    }),
}));
