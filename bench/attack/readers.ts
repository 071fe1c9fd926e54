import { connect } from "node:net";
import type { Attack } from "./attack.ts";
import { ask, attackLocalModel, chatRequest } from "./local-model.ts";

/** Readers that take nothing of an endless answer hold the slots of a model; a further client asks. */
export const attacks: readonly Attack[] = [
  {
    name: "4 clients that do not read",
    run: () =>
      attackLocalModel({
        attack: async (server, fail, signal) => {
          const endless = { model: server.model, prompt: "<|script:endless|>", max_tokens: 60_000, stream: true };
          const body = JSON.stringify(endless);
          const { hostname, port } = new URL(server.url);
          const sockets = Array.from({ length: 4 }, () => {
            const socket = connect(Number(port), hostname).pause();
            socket.on("error", () => {});
            socket.write(`POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
            return socket;
          });
          try {
            const request = chatRequest(server, { max_tokens: 4 });
            const { status } = await ask(server, "/v1/chat/completions", request, signal);
            if (status !== 200) fail(`the further client was answered ${status}`);
            return `the further client: ${status}`;
          } finally {
            for (const socket of sockets) socket.destroy();
          }
        },
      }),
  },
];
