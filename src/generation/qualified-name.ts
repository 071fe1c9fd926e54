/**
 * The one name under which a model knows a tool that belongs to a group: both names with two underscores between, as agents write the
 * tools of MCP servers. A tool without a group keeps its name.
 */
export function qualifiedName({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}
