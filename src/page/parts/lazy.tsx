import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";

interface Properties<P> {
  /** Imports the view; the same function each time. */
  readonly load: () => Promise<ComponentType<P>>;
  readonly properties: P;
  /** Shown until the script is loaded, and if it cannot be; default: a sentence. */
  readonly meanwhile?: VNode;
}

/** The views that are loaded, by their `load`. */
const loaded = new Map<unknown, unknown>();

/** A view whose script is loaded when it is first shown. */
export function Lazy<P extends object>({ load, properties, meanwhile }: Properties<P>): VNode {
  const [, renderAgain] = useState({});
  const [problem, setProblem] = useState(false);
  const View = loaded.get(load) as ComponentType<P> | undefined;
  useEffect(() => {
    if (View) return;
    load().then(
      (view) => {
        loaded.set(load, view);
        renderAgain({});
      },
      () => setProblem(true),
    );
  }, [load]);
  if (View) return <View {...properties} />;
  if (meanwhile) return meanwhile;
  return problem ? (
    <p class="banner wrong">The script of this view could not be loaded. Reload the page.</p>
  ) : (
    <p class="waiting">Loading…</p>
  );
}
