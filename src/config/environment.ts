/**
 * Replaces environment variables in a text: `${NAME}`, or `${NAME:-default}` with a default for when it is not set; `$${` becomes `${`.
 * Throws an Error for a variable that is not set and has no such text.
 */
export function withEnvironment(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  return text.replace(/\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name?: string, otherwise?: string) => {
    if (name === undefined) return "${";
    const value = environment[name] ?? otherwise;
    if (value === undefined) throw new Error(`the environment variable ${name} is not set`);
    return value;
  });
}
