import { parseTokens, tokensOf, type Node } from "./library.ts";

/**
 * Rewrites a parsed template in place so that it renders as Python's Jinja does. The library (0.5.11) evaluates values by
 * JavaScript's rules; each difference below was met in a published chat template or breaks one under inputs that occur:
 *
 * - printing and `| string` of booleans, None, floats, lists and dicts: JSON here, `str()` in Python
 * - `==` compares by JavaScript's loose equality (`"1" == 1`, None equals undefined, two equal lists differ); `<` knows no strings;
 *   `in`, `~` throw for None and undefined
 * - going through, measuring and filtering something undefined throws, where Python finds it empty; strings cannot be gone through
 * - `strip("x")` ignores its argument; many methods and filters are missing; a dict with a key "items" hides its method `items()`
 * - `for a, b in …` takes no tuples
 * - dict keys that are numbers are refused; strings are indexed in UTF-16 units
 * - what a loop's body sets is still set in the next round; `continue` and `break` lose what the round had written before
 *
 * Every one of these becomes a call of a function whose name no template can write, as it has a space; python-template.ts has them.
 */
export function pythonSemantics(program: Node): void {
  rewriteMembers(program);
  program["body"] = printed(nodesIn(program["body"]));
}

/** Every name that a program looks up somewhere. */
export function identifiersIn(value: unknown, names: Set<string> = new Set()): Set<string> {
  if (Array.isArray(value)) for (const item of value) identifiersIn(item, names);
  else if (value instanceof Map) for (const entry of value) identifiersIn(entry, names);
  else if (isNode(value)) {
    if (value.type === "Identifier") names.add(identifierName(value));
    for (const member of Object.values(value)) identifiersIn(member, names);
  }
  return names;
}

function rewrite(node: Node): Node {
  if (node.type === "Set" && isNode(node["assignee"])) {
    const { assignee } = node;
    rewriteMembers(node);
    node["assignee"] = assignee;
  } else rewriteMembers(node);

  switch (node.type) {
    case "FilterExpression":
      return filtered(node["filter"] as Node, node["operand"] as Node);
    case "TestExpression": {
      const test = call("python test", text(identifierName(node["test"])), node["operand"] as Node);
      return node["negate"] === true ? not(test) : test;
    }
    case "BinaryExpression": {
      const operator = (node["operator"] as { value: string }).value;
      if (operator === "and" || operator === "or") return node;
      return call("python binary", text(operator), node["left"] as Node, node["right"] as Node);
    }
    case "MemberExpression":
      return member(node);
    case "CallExpression":
      return methodCall(node);
    case "ObjectLiteral":
      return call("python dict", ...[...(node["value"] as Map<Node, Node>)].flat());
    case "For":
      return loop(node);
    default:
      return node;
  }
}

/** Rewrites what a node holds, and makes the bodies that it holds print as Python does. */
function rewriteMembers(node: Node): void {
  for (const [name, value] of Object.entries(node)) {
    if (isNode(value)) node[name] = rewrite(value);
    else if (Array.isArray(value)) {
      const nodes = value.map((item: unknown) => (isNode(item) ? rewrite(item) : item));
      node[name] = bodies.has(name) && statements.has(node.type) ? printed(nodesIn(nodes)) : nodes;
    } else if (value instanceof Map) {
      node[name] = new Map([...(value as Map<Node, Node>)].map(([key, item]) => [rewrite(key), rewrite(item)]));
    }
  }
}

const bodies: ReadonlySet<string> = new Set(["body", "alternate", "defaultBlock"]);
const statements: ReadonlySet<string> = new Set([
  "If",
  "For",
  "Set",
  "Macro",
  "CallStatement",
  "FilterStatement",
  "Comment",
  "Break",
  "Continue",
]);

/** Each expression that stands in a body for its text is printed. */
function printed(body: readonly Node[]): Node[] {
  return body.map((node) =>
    statements.has(node.type) || node.type === "StringLiteral" || isCallOf(node, "python print")
      ? node
      : call("python print", node),
  );
}

function filtered(filter: Node, operand: Node): Node {
  const callee = filter.type === "CallExpression" ? filter["callee"] : filter;
  const args = filter.type === "CallExpression" ? nodesIn(filter["args"]) : [];
  const name = identifierName(callee);
  if (name.startsWith("is not ")) return not(call("python test", text(name.slice(7)), operand, ...args));
  if (name.startsWith("is ")) return call("python test", text(name.slice(3)), operand, ...args);
  return call("python filter", text(name), operand, ...args);
}

function member(node: Node): Node {
  const object = node["object"] as Node;
  const property = node["property"] as Node;
  if (property.type === "SliceExpression") {
    const bounds = [property["start"], property["stop"], property["step"]];
    return call("python slice", object, ...bounds.map((bound) => (isNode(bound) ? bound : identifier("none"))));
  }
  const named = node["computed"] !== true && property.type === "Identifier";
  return call("python item", object, named ? text(identifierName(property)) : property);
}

/** `object.name(…)`: by now the callee is a `python item` of the object. */
function methodCall(node: Node): Node {
  const callee = node["callee"] as Node;
  if (!isCallOf(callee, "python item")) return node;
  return call("python method", ...nodesIn(callee["args"]), ...nodesIn(node["args"]));
}

function loop(node: Node): Node {
  const iterable = node["iterable"] as Node;
  const each = (node["loopvar"] as Node).type === "TupleLiteral" ? "python unpacked" : "python each";
  if (iterable.type === "SelectExpression") iterable["lhs"] = call(each, iterable["lhs"] as Node);
  else node["iterable"] = call(each, iterable);

  const body = nodesIn(node["body"]);
  const breaks = body.some((each) => jumps(each, ["Break"]));
  const variables = namesIn(node["loopvar"] as Node);
  const set = [...new Set(body.flatMap(assigned))].filter((name) => !variables.includes(name));
  const start: Node[] = [];
  if (set.length > 0) start.push(call("python forget", ...set.map(text)));
  if (breaks) start.push(ifNode(identifier("python broken"), [breakNode()], []));
  node["body"] = [...start, ...withoutJumps(body)];
  return node;
}

/** What a loop's body assigns in the loop's own scope. */
function assigned(node: Node): string[] {
  switch (node.type) {
    case "Set":
      return [...namesIn(node["assignee"] as Node), ...nodesIn(node["body"]).flatMap(assigned)];
    case "If":
      return [...nodesIn(node["body"]), ...nodesIn(node["alternate"])].flatMap(assigned);
    case "FilterStatement":
      return nodesIn(node["body"]).flatMap(assigned);
    default:
      return [];
  }
}

function namesIn(target: Node): string[] {
  if (target.type === "Identifier") return [identifierName(target)];
  return target.type === "TupleLiteral" ? nodesIn(target["value"]).flatMap(namesIn) : [];
}

function jumps(node: Node, types: readonly string[]): boolean {
  if (types.includes(node.type)) return true;
  return (
    node.type === "If" && [...nodesIn(node["body"]), ...nodesIn(node["alternate"])].some((each) => jumps(each, types))
  );
}

/**
 * The same body without `continue` and `break`: what follows a condition that may jump moves into its branches, and a break is
 * noted, to be done when the next round begins, where no text can be lost.
 */
function withoutJumps(body: readonly Node[]): Node[] {
  const result: Node[] = [];
  for (const [index, node] of body.entries()) {
    if (node.type === "Continue") return result;
    if (node.type === "Break") return [...result, call("python break")];
    if (jumps(node, ["Break", "Continue"])) {
      const rest = body.slice(index + 1);
      const branch = (name: string): Node[] => withoutJumps([...nodesIn(node[name]), ...rest]);
      return [...result, ifNode(node["test"] as Node, branch("body"), branch("alternate"))];
    }
    result.push(node);
  }
  return result;
}

// Nodes are made from the library's own, whose class some of its functions ask for.

const samples = nodesIn(
  parseTokens(tokensOf("{{ f('') }}{% for x in y %}{% if not x %}{% break %}{% endif %}{% endfor %}"))["body"],
);
const [callSample, forSample] = samples as [Node, Node];
const [ifSample] = nodesIn(forSample["body"]) as [Node];
const [breakSample] = nodesIn(ifSample["body"]) as [Node];
const [textSample] = nodesIn(callSample["args"]) as [Node];

function made(sample: unknown, members: Readonly<Record<string, unknown>>): Node {
  return Object.assign(Object.create(Object.getPrototypeOf(sample)) as Node, sample, members);
}

const identifier = (name: string): Node => made(callSample["callee"], { value: name });
const text = (value: string): Node => made(textSample, { value });
const not = (argument: Node): Node => made(ifSample["test"], { argument });
const breakNode = (): Node => made(breakSample, {});
const call = (name: string, ...args: Node[]): Node => made(callSample, { callee: identifier(name), args });
const ifNode = (test: Node, body: Node[], alternate: Node[]): Node => made(ifSample, { test, body, alternate });

/** Operators are kept as tokens; everything else with a type is a node. */
function isNode(value: unknown): value is Node {
  if (typeof value !== "object" || value === null || !("type" in value)) return false;
  return typeof value.type === "string" && !value.type.endsWith("Operator");
}

function nodesIn(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function identifierName(node: unknown): string {
  return isNode(node) && typeof node["value"] === "string" ? node["value"] : "";
}

function isCallOf(node: Node, name: string): boolean {
  return node.type === "CallExpression" && identifierName(node["callee"]) === name;
}
