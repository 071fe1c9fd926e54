import type { Concern, Rule, Severity } from "./rule.ts";

/**
 * Reads a table of rules: below each `# concern` its rules, each as `id (severity): says`, then indented `source:`, and where there are any
 * `breaks:` and `follows:`, lists whose elements ` · ` separates. A line that is indented further continues the line before it.
 */
export function readTexts(table: string): readonly Rule[] {
  const rules: { -readonly [Member in keyof Rule]: Rule[Member] }[] = [];
  let concern = "";
  for (const line of table.replaceAll("\n    ", " ").split("\n")) {
    const rule = rules.at(-1);
    const [, name = "", value = ""] = /^ {2}(\w+): (.*)$/.exec(line) ?? [];
    const [, id = "", severity = "", says = ""] = /^(\S+) \((\w+)\): (.*)$/.exec(line) ?? [];
    if (line.startsWith("# ")) concern = line.slice(2);
    else if (id !== "")
      rules.push({ id, severity: severity as Severity, concern: concern as Concern, says, source: "", breaks: [] });
    else if (rule && name === "source") rule.source = value;
    else if (rule && (name === "breaks" || name === "follows")) rule[name] = value.split(" · ");
  }
  return rules;
}
