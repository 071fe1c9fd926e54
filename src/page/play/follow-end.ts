import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** So near to its end, in pixels, a conversation follows the answer that is being received. */
const nearEnd = 48;

/** Calls `stop` (that of the first render) for Escape, unless `element` is in a hidden view, a dialog is open, or another control has used the key. */
export function useStopKey(element: RefObject<HTMLElement | null>, stop: () => void): void {
  useLayoutEffect(() => {
    const press = ({ key, defaultPrevented }: KeyboardEvent): void => {
      if (key !== "Escape" || defaultPrevented || document.querySelector("dialog[open]")) return;
      if (!element.current?.closest("[hidden]")) stop();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/**
 * Keeps the end of growing content in view while the returned `current` is true: at first, and until the user scrolls up. `content`: the
 * only child of `scroller` that grows.
 */
export function useFollowEnd(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
): { current: boolean } {
  const follows = useRef(true);
  useEffect(() => {
    const [box, inner] = [scroller.current, content.current];
    if (!box || !inner) return;
    /** Where the conversation was when it was last looked at. */
    let seen = 0;
    const look = (): void => {
      // The content may have grown since this page scrolled, by the table of a comparison for example.
      const isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < nearEnd;
      if (isNearEnd || box.scrollTop < seen) follows.current = isNearEnd;
      seen = box.scrollTop;
    };
    box.addEventListener("scroll", look, { passive: true });
    // Called after a layout and before it is painted: following costs no layout of its own.
    const observer = new ResizeObserver(() => {
      // The user has scrolled up, and the event has not arrived yet.
      if (box.scrollTop < seen - nearEnd) follows.current = false;
      if (!follows.current) return;
      box.scrollTop = box.scrollHeight;
      seen = box.scrollTop;
    });
    observer.observe(inner);
    return () => {
      box.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, []);
  return follows;
}
