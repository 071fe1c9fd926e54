import { callMessages, callsOfMessage, pieces } from "./chat-server.ts";
import type { ChatServer, Json } from "./chat-server.ts";
import { reasoningOfCall } from "./task.ts";

/** What a server has whose messages have the reasoning as a text in `member`. */
export function withReasoning(member: string): Pick<ChatServer, "message" | "deltas" | "lost"> {
  return {
    message: ({ reasoning }): Json => (reasoning === undefined ? {} : { [member]: reasoning }),
    deltas: ({ reasoning = "" }) => pieces(reasoning).map((piece) => ({ [member]: piece })),
    lost: (body) => lostReasoning(body, (message) => message[member]),
  };
}

/** The reasoning of steps since the user's last text that does not come back as it was. `sent`: what a message has of it. */
export function lostReasoning(body: Json, sent: (message: Json) => unknown): string[] {
  return callMessages(body).flatMap(({ message, since }) => {
    const [first] = callsOfMessage(message);
    const was = first && reasoningOfCall(first);
    if (!since || was === undefined || sent(message) === was) return [];
    return [`reasoning of ${first?.name} ${JSON.stringify(first?.input)}: ${JSON.stringify(sent(message))}`];
  });
}
