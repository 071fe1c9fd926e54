import type { CheckEvent } from "../../check/report/check-event.ts";

/** What the thread of a check tells: events, or why the server cannot be checked. */
export type ThreadMessage = CheckEvent | { readonly type: "failed"; readonly message: string };
