import type { Attack } from "./attack.ts";
import { ask, attackLocalModel, chatRequest } from "./local-model.ts";

/** Texts of a request that become matchers, far longer than anything that anybody searches for. */
export const attacks: readonly Attack[] = [
  text("20 MB of one stop string", "stop", () => ({ stop: "s".repeat(20_000_000) })),
  text("4 MB of one stop string", "stop", () => ({ stop: ["s".repeat(4_000_000)] })),
  text("1,000,000 stop strings", "stop", () => ({ stop: Array.from({ length: 1_000_000 }, (_, at) => `s${at}`) })),
];

function text(name: string, place: string, members: () => object): Attack {
  return {
    name,
    run: () =>
      attackLocalModel({
        attack: async (server, fail, signal) => {
          const request = chatRequest(server, members());
          const answer = await ask(server, "/v1/chat/completions", request, signal);
          if (answer.status !== 400) fail(`it was answered ${answer.status}: ${answer.text.slice(0, 200)}`);
          else if (!answer.text.includes(place))
            fail(`the refusal does not name '${place}': ${answer.text.slice(0, 200)}`);
          return String(answer.status);
        },
      }),
  };
}
