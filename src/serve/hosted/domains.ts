/**
 * The domains that results may come from, of a request or of the configuration. A rule is a host, which means its subdomains, too, or a host
 * with the beginning of a path, in which one `*` stands for any text: `example.com`, `docs.example.com/guide`. A scheme is ignored. Sources:
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool, "Domain filtering"; OpenAI's `filters.allowed_domains` of
 * `web_search`, which are hosts with their subdomains.
 */
export interface DomainRules {
  /** Absent: all. */
  readonly allowedDomains?: readonly string[] | undefined;
  readonly blockedDomains?: readonly string[] | undefined;
}

/** Whether an address may be shown or fetched. What is not an address of the web may not. */
export function isAllowed(address: string, ...rules: readonly DomainRules[]): boolean {
  const place = placeOf(address);
  if (!place) return false;
  return rules.every(
    ({ allowedDomains, blockedDomains = [] }) =>
      (allowedDomains === undefined || allowedDomains.some((rule) => matches(rule, place))) &&
      !blockedDomains.some((rule) => matches(rule, place)),
  );
}

/** The host of a rule, in the form that URLs have; undefined: it has none. */
export function hostOfRule(rule: string): string | undefined {
  return placeOf(withoutScheme(rule))?.host;
}

interface Place {
  /** In lower case, as Punycode, without the dot at its end. */
  readonly host: string;
  readonly path: string;
}

function placeOf(address: string): Place | undefined {
  const text = address.includes("://") ? address : `http://${address}`;
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, pathname, search } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  return { host: hostname.replace(/\.$/, ""), path: pathname + search };
}

function withoutScheme(rule: string): string {
  return rule.replace(/^https?:\/\//i, "");
}

function matches(rule: string, { host, path }: Place): boolean {
  const text = withoutScheme(rule);
  const slash = text.indexOf("/");
  const own = placeOf(slash === -1 ? text : text.slice(0, slash));
  if (!own) return false;
  if (host !== own.host && !host.endsWith(`.${own.host}`)) return false;
  return slash === -1 || pathMatches(text.slice(slash), path);
}

/** Whether a path begins as a rule says, up to the end of a part: `/blog` is not the beginning of `/blogger`. */
function pathMatches(rule: string, path: string): boolean {
  const [first = "", second] = rule.split("*", 2);
  if (second === undefined) return beginsWith(path, first);
  if (!path.startsWith(first)) return false;
  const at = path.indexOf(second, first.length);
  return at !== -1 && endsPart(path, at + second.length, second);
}

function beginsWith(path: string, beginning: string): boolean {
  return path.startsWith(beginning) && endsPart(path, beginning.length, beginning);
}

function endsPart(path: string, at: number, before: string): boolean {
  return before.endsWith("/") || before === "" || at === path.length || "/?#".includes(path[at] ?? "");
}
