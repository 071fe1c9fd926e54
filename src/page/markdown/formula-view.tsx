import { createElement, type VNode } from "preact";
import { useMemo } from "preact/hooks";
import { type MathElement, readFormula } from "./formula.ts";

export interface FormulaProperties {
  readonly tex: string;
  /** It is written as on a line of its own, … */
  readonly display: boolean;
  /** … and has one. */
  readonly block: boolean;
  /** The formula as it was written. */
  readonly source: VNode;
}

/** A longer formula may be wider than its column: it can be scrolled, and has the focus for that. In characters of LaTeX. */
const longLength = 60;
const scrollable = { tabIndex: 0, role: "group", "aria-label": "Formula" } as const;

/** A formula as MathML, or as it was written if it cannot be read. */
export default function FormulaView({ tex, display, block, source }: FormulaProperties): VNode {
  const formula = useMemo(() => readFormula(tex, display), [tex, display]);
  if (!formula) return source;
  const properties = { class: "formula", ...(tex.length >= longLength && scrollable) };
  const math = elementOf(formula);
  return block || display ? <div {...properties}>{math}</div> : <span {...properties}>{math}</span>;
}

/** Preact makes elements of MathML inside `math`. */
function elementOf({ name, attributes, style, children }: MathElement): VNode {
  const properties: object = { ...attributes, style };
  const inside = children.map((child) => (typeof child === "string" ? child : elementOf(child)));
  return createElement(name, properties, ...inside);
}
