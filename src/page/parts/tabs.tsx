import type { TargetedKeyboardEvent, VNode } from "preact";
import { useId } from "preact/hooks";

interface Properties<Name extends string> {
  readonly label: string;
  readonly tabs: readonly { readonly name: Name; readonly title: string }[];
  readonly current: Name;
  readonly onChoose: (name: Name) => void;
  readonly children: VNode;
}

/** Tabs with the panel of one of them. Source of the keys: WAI-ARIA Authoring Practices, "Tabs". */
export function Tabs<Name extends string>({ label, tabs, current, onChoose, children }: Properties<Name>): VNode {
  const id = useId();
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const at = tabs.findIndex(({ name }) => name === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (!tab) return;
    event.preventDefault();
    onChoose(tab.name);
    const element = event.currentTarget.querySelector(`[data-tab="${tab.name}"]`);
    if (element instanceof HTMLElement) element.focus();
  };
  return (
    <>
      <div class="tab-list" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            class="quiet"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`}>
        {children}
      </div>
    </>
  );
}
