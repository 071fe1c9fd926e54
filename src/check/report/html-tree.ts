/** HTML as data: text or an element. `htmlOf` writes it as text; the page creates nodes from it. */
export type HtmlTree = string | HtmlElement;

export interface HtmlElement {
  readonly tag: string;
  /** `true`: an attribute without a value. */
  readonly attributes: Readonly<Record<string, string | true>>;
  readonly children: readonly HtmlTree[];
}

type Children = readonly (HtmlTree | readonly HtmlTree[])[];

export function element(tag: string, attributes: HtmlElement["attributes"], ...children: Children): HtmlElement {
  return { tag, attributes, children: children.flat() };
}

/** The HTML of a tree; no text in it is taken for markup. */
export function htmlOf(tree: HtmlTree): string {
  if (typeof tree === "string") return escaped(tree);
  const { tag, attributes, children } = tree;
  const written = Object.entries(attributes).map(([name, value]) =>
    value === true ? ` ${name}` : ` ${name}="${escaped(value)}"`,
  );
  return `<${tag}${written.join("")}>${children.map(htmlOf).join("")}</${tag}>`;
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
