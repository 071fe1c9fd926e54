import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** Number of rows that are rendered above and below those in sight. */
const margin = 10;

/** The rows of a box that scrolls. */
export interface RowsInSight {
  /** Of the element that scrolls. */
  readonly box: RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
  /** The numbers of the rows to render. */
  readonly places: readonly number[];
  /** Scrolls to a row. */
  reveal(place: number): void;
  /** The number of the row that a key leads to; undefined: the key leads to none. */
  placeAfter(key: string): number | undefined;
}

/**
 * Rows of one height. Only those in sight are rendered, and the chosen one: `aria-activedescendant` names its id. Source of the keys:
 * WAI-ARIA Authoring Practices, "Tree View".
 *
 * @param rowHeight In CSS pixels.
 * @param chosen Number of the chosen row; -1: none.
 */
export function useRowsInSight(count: number, rowHeight: number, chosen: number): RowsInSight {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 800 });
  const onScroll = (): void => {
    if (box.current) setSight({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useEffect(() => {
    onScroll();
    const observer = new ResizeObserver(onScroll);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(sight.top / rowHeight) - margin);
  const end = Math.min(count, Math.ceil((sight.top + sight.height) / rowHeight) + margin);
  const places = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  if (chosen >= 0 && (chosen < first || chosen >= end)) places.push(chosen);
  const page = Math.max(1, Math.floor(sight.height / rowHeight) - 1);
  return {
    box,
    onScroll,
    places,
    reveal(place) {
      // Rows that were opened for it have been rendered by then.
      requestAnimationFrame(() => {
        const { current } = box;
        if (!current || place < 0) return;
        const bottom = (place + 1) * rowHeight - current.clientHeight;
        current.scrollTop = Math.max(bottom, Math.min(current.scrollTop, place * rowHeight));
      });
    },
    placeAfter(key) {
      const steps: Readonly<Record<string, number>> = {
        ArrowDown: 1,
        ArrowUp: -1,
        PageDown: page,
        PageUp: -page,
        Home: -count,
        End: count,
      };
      const step = steps[key];
      return step === undefined ? undefined : Math.max(0, Math.min(count - 1, chosen + step));
    },
  };
}
