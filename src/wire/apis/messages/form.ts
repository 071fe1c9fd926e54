import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../profile.ts";

/** How a profile writes messages. Writers read these members and do not branch on the profile. */
export interface MessageForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** The maximum number of spaces before an event's last brace. */
  readonly maxPadding: number;
  /** Ids of calls that are kept as the source sent them. */
  readonly callIds: RegExp;
  /** Reasoning is shown to clients that have not requested it. */
  readonly showsUnrequestedReasoning: boolean;
}

export const messageForms: Readonly<Record<Profile["name"], MessageForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    maxPadding: 0,
    // Clients accept these ids and send them back, and an upstream may know only its own.
    callIds: /^[a-zA-Z0-9_-]+$/,
    showsUnrequestedReasoning: true,
  },
  // Recordings of 2024 to 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
    maxPadding: 15,
    callIds: /^toolu_[a-zA-Z0-9_]+$/,
    showsUnrequestedReasoning: false,
  },
};
