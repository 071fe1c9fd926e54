import type { VNode } from "preact";
import { announcement } from "./announcement.ts";
import { useChanges } from "./changing.ts";

/** Where screen readers hear announcements. */
export function Announcer(): VNode {
  useChanges(announcement);
  return (
    <div class="unseen" role="status" aria-live="polite">
      {announcement.text}
    </div>
  );
}
