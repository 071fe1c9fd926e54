import { chatPort } from "./chat/port.ts";
import { completionsPort } from "./completions/port.ts";
import { messagesPort } from "./messages/port.ts";
import type { ServedPort } from "./port-state.ts";
import { responsesPort } from "./responses/port.ts";

/** Every API that generates. */
export const ports: readonly ServedPort[] = [chatPort, completionsPort, responsesPort, messagesPort];
