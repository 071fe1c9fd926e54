/**
 * The one name under which a model knows a tool that belongs to a group: both names with two underscores between, as agents write the
 * tools of MCP servers.
 */
export function qualifiedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** A tool's own name within its group. `name` may be the qualified one. */
export function nameWithin(namespace: string, name: string): string {
  const prefix = `${namespace}__`;
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
