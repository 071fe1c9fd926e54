import type { Attack } from "./attack.ts";
import { ask, attackLocalModel, chatRequest } from "./local-model.ts";

/** Texts of a request that become matchers, far longer than anything that a client would search for. */
export const attacks: readonly Attack[] = [
  text("20 MB of one stop string", "stop", () => ({ stop: "s".repeat(20_000_000) })),
  text("4 MB of one stop string", "stop", () => ({ stop: ["s".repeat(4_000_000)] })),
  text("200,000 stop strings", "stop", () => ({ stop: Array.from({ length: 200_000 }, (_, at) => `s${at}`) })),
  text("1,000 stop strings of 100 characters", "stop", () => ({
    stop: Array.from({ length: 1000 }, () => "s".repeat(100)),
  })),
  text("4 MB of a text with a bias", "logit_bias", () => ({ logit_bias: [["s".repeat(4_000_000), 1]] })),
  text("1,000 sequence breakers", "dry_sequence_breakers", () => ({
    dry_multiplier: 1,
    dry_sequence_breakers: Array.from({ length: 1000 }, (_, at) => `s${at}`),
  })),
  text("4 MB of sequence breakers", "dry_sequence_breakers", () => ({
    dry_multiplier: 1,
    dry_sequence_breakers: JSON.stringify(["s".repeat(4_000_000)]),
  })),
  text("4 MB of stop sequences", "stop_sequences", () => ({ stop_sequences: ["s".repeat(4_000_000)] }), "/v1/messages"),
  text("4 MB of a banned text", "logit_bias", () => ({ logit_bias: { ["s".repeat(4_000_000)]: -100 } })),
  text("4 MB of grammar", "grammar", () => ({ grammar: `root ::= "${"s".repeat(4_000_000)}"` })),
  text("4 MB of a pattern", "guided_regex", () => ({ guided_regex: "s".repeat(4_000_000) })),
];

function text(name: string, place: string, members: () => object, path = "/v1/chat/completions"): Attack {
  return {
    name,
    run: () =>
      attackLocalModel({
        attack: async (server, fail, signal) => {
          const request = chatRequest(server, members());
          const answer = await ask(server, path, request, signal);
          if (answer.status !== 400) fail(`it was answered ${answer.status}: ${answer.text.slice(0, 200)}`);
          else if (!answer.text.includes(place))
            fail(`the refusal does not name '${place}': ${answer.text.slice(0, 200)}`);
          return String(answer.status);
        },
      }),
  };
}
