import type { GroupRule } from "./group-rules.ts";

/** Rules that only a running server can show; the probes in ../../probe/live-*.ts judge by them. */
export const liveRules: readonly GroupRule[] = [
  {
    id: "live/streams-apart",
    severity: "error",
    concern: "choices mix",
    says: "Streams that run side by side do not mix: each has its own id and its own answer.",
    source: "requirement E7; gateways that share a parser's state",
    breaks: ["every server application"],
    judges: "group",
  },
  {
    id: "live/side-by-side",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "A second stream begins before the first has ended.",
    source: "requirement E8",
    breaks: ["every application with more than one user"],
    judges: "group",
  },
  {
    id: "live/disconnect",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "When clients leave, their generations end: the next request need not wait for them.",
    source: "requirement E5; LiteLLM #30244, #31499; new-api #4186",
    breaks: ["users (a stop button that stops nothing), and whoever pays for the tokens"],
    judges: "group",
  },
];
