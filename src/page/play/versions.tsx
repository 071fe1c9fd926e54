import type { VNode } from "preact";
import { announcement } from "../parts/changing.ts";
import type { Conversation } from "./conversation.ts";
import type { Turn } from "./turn.ts";

/** Pages through the versions of a turn: "2 of 3". Nothing if there is only one. */
export function Versions({
  turn,
  conversation,
}: {
  readonly turn: Turn;
  readonly conversation: Conversation;
}): VNode | null {
  const ids = conversation.tree.versionsOf(turn);
  if (ids.length < 2 || !conversation.isKept) return null;
  const at = ids.indexOf(turn.id);
  const go = (to: number): void => {
    const id = ids[to];
    if (id === undefined) return;
    conversation.show(id);
    announcement.say(`Version ${to + 1} of ${ids.length}`);
  };
  return (
    <div class="versions" role="group" aria-label="Versions">
      <button
        type="button"
        class="quiet"
        aria-label="Previous version"
        aria-disabled={at === 0}
        onClick={() => go(at - 1)}
      >
        ‹
      </button>
      <span>
        {at + 1} of {ids.length}
      </span>
      <button
        type="button"
        class="quiet"
        aria-label="Next version"
        aria-disabled={at === ids.length - 1}
        onClick={() => go(at + 1)}
      >
        ›
      </button>
      <button type="button" class="quiet" aria-label="Delete this version" onClick={() => conversation.remove(turn.id)}>
        Delete
      </button>
    </div>
  );
}
