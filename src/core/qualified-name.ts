/** The name of a grouped tool in a prompt: namespace and name joined by two underscores, as agents name the tools of MCP servers. */
export function qualifiedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** A tool's name within its group. `name` may be the qualified name. */
export function nameWithin(namespace: string, name: string): string {
  const prefix = `${namespace}__`;
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
