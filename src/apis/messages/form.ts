import type { Profile } from "../profile.ts";
import { unbufferedStream } from "../stream-headers.ts";

/** What a message looks like, apart from what it says and what the client asked for. Writers read it and know no profile. */
export interface MessageForm {
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** The most spaces that stand before an event's last brace. */
  readonly mostPadding: number;
  /** The ids of calls that are kept as their source gave them. */
  readonly callIds: RegExp;
  /** Whom nobody asked to think may think all the same: that is shown. */
  readonly showsUnaskedThoughts: boolean;
}

export const messageForms: Readonly<Record<Profile["name"], MessageForm>> = {
  lean: {
    streamHeaders: unbufferedStream,
    mostPadding: 0,
    // What clients take: they send it back, and a server behind may know its own ids only.
    callIds: /^[a-zA-Z0-9_-]+$/,
    showsUnaskedThoughts: true,
  },
  // Recordings of 2024 to 2026.
  exact: {
    streamHeaders: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
    mostPadding: 15,
    callIds: /^toolu_[a-zA-Z0-9_]+$/,
    // Anthropic's clients do not expect it.
    showsUnaskedThoughts: false,
  },
};
