import { chatPort } from "./chat/port.ts";
import { completionsPort } from "./completions/port.ts";
import { messagesPort } from "./messages/port.ts";
import type { Port } from "./port.ts";
import { responsesPort } from "./responses/port.ts";

/** Every API that generates. */
export const ports: readonly Port[] = [chatPort, completionsPort, responsesPort, messagesPort];
