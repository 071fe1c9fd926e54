import type { Route, RoutedFormat } from "../format.ts";
import { awaited, type Reading } from "./cursor.ts";
import { CallAtHand, type Desk, Rest } from "./desk.ts";
import { MarkerSet, matchMarker, readToMarker } from "./marker-set.ts";
import { planOf } from "./plan.ts";
import { readPlain } from "./read-content.ts";
import { streamJson } from "./read-json.ts";

/** What of a routed format is compiled once. */
interface Routing {
  readonly format: RoutedFormat;
  readonly start: MarkerSet;
  /** What ends a header: its end, or another start. */
  readonly header: MarkerSet;
  /** What ends a body: its ends, then another start. */
  readonly body: MarkerSet;
  readonly routes: readonly { readonly header: RegExp; readonly to: Route["to"] }[];
}

const routings = new WeakMap<RoutedFormat, Routing>();

function routingOf(format: RoutedFormat): Routing {
  let routing = routings.get(format);
  if (!routing) {
    routing = {
      format,
      start: new MarkerSet([format.start]),
      header: new MarkerSet([format.headerEnd, format.start, ...format.ends]),
      body: new MarkerSet([...format.ends, format.start, ...(format.strip ?? [])]),
      routes: format.routes.map(({ header, to }) => ({ header: new RegExp(header), to })),
    };
    routings.set(format, routing);
  }
  return routing;
}

type RoutedDesk = Omit<Desk, "plan">;

/** Longer is no header. Bounds what is held back for one. */
const longestHeader = 600;

/** Reads messages with headers to the end of the text. */
export function* readRouted(desk: RoutedDesk, format: RoutedFormat, prefix?: string): Reading<void> {
  const routing = routingOf(format);
  const { cursor, output } = desk;
  let begun = prefix === undefined ? "" : prefix.slice(prefix.lastIndexOf(format.start) + format.start.length);
  if (prefix !== undefined && !prefix.includes(format.start)) begun = "";
  const headerEnd = begun.indexOf(format.headerEnd);
  if (headerEnd >= 0) yield* readBody(desk, routing, begun.slice(0, headerEnd));
  begun = headerEnd >= 0 ? "" : begun;
  for (;;) {
    const header = yield* readHeader(desk, routing, begun);
    begun = "";
    if (header === null) {
      // No header: what stands here is visible text.
      output.text(cursor.take());
      if ((yield* cursor.peek()) < 0) return;
      yield* readText(desk, routing, (raw) => output.text(raw));
    } else yield* readBody(desk, routing, header);
    if ((yield* cursor.peek()) < 0) return;
  }
}

/** Reads up to the header's end. Returns the header, whose raw text is pending; null: it is not a header. */
function* readHeader(desk: RoutedDesk, { format, start, header }: Routing, begun: string): Reading<string | null> {
  const { cursor, output } = desk;
  yield* cursor.skipSpace();
  // The start belongs to the header: it goes where the header goes.
  const behindStart = (yield* matchMarker(cursor, start)) >= 0 ? cursor.pending : 0;
  const none = (): null => {
    output.markup(cursor.take(cursor.pending - behindStart));
    return null;
  };
  let text = begun;
  for (;;) {
    let code = cursor.now();
    if (code === awaited) code = yield* cursor.peek();
    if (code < 0 || text.length > longestHeader) return none();
    if (header.child(0, code) >= 0) {
      const found = yield* matchMarker(cursor, header);
      if (found === 0) return text;
      if (found >= 1) {
        cursor.pos -= header.markers[found]?.length ?? 0;
        return none();
      }
    }
    if (code === 10 && format.headerEnd !== "\n") return none();
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
}

/** Reads a body, with its header pending, to where its route says. */
function* readBody(desk: RoutedDesk, routing: Routing, header: string): Reading<void> {
  const { cursor, output, callsAllowed } = desk;
  const { to, name } = routeOf(routing, header);
  if (typeof to !== "string") {
    if (callsAllowed && "id" in to) {
      output.markup(cursor.take());
      const plain = { ...desk, plan: planOf(to) };
      yield* readPlain(plain, { place: "outside", assumed: false }, [...routing.format.ends, routing.format.start]);
      output.markup(cursor.take());
      return;
    }
    if (callsAllowed && (yield* readCallBody(desk, routing, name))) return;
    if (!callsAllowed) output.markup(cursor.take());
    return yield* readText(desk, routing, (raw) => output.text(raw));
  }
  if (to === "reasoning") {
    output.openThought(cursor.take());
    yield* readText(
      desk,
      routing,
      (raw) => output.thought(raw),
      (raw) => output.closeThought(raw),
    );
    if (output.phase === "reasoning" && !cursor.ended) output.closeThought("");
    return;
  }
  output.markup(cursor.take());
  const show = to === "drop" ? (raw: string) => output.markup(raw) : (raw: string) => output.text(raw);
  yield* readText(desk, routing, show);
}

function routeOf(routing: Routing, header: string): { to: Route["to"]; name: string } {
  for (const { header: pattern, to } of routing.routes) {
    const found = pattern.exec(header);
    if (found) return { to, name: found.groups?.["name"]?.trim() ?? "" };
  }
  return { to: "content", name: "" };
}

/** Reads a call's JSON. Gives false, with its text pending and its header accounted for, if it is not JSON. */
function* readCallBody(desk: RoutedDesk, routing: Routing, name: string): Reading<boolean> {
  const { cursor, output } = desk;
  const header = cursor.pending;
  output.phase = "call";
  const atHand = new CallAtHand(desk, name);
  const code = yield* cursor.skipSpace();
  const good = code === 123 && name !== "" && (yield* streamJson(cursor, atHand));
  if (!atHand.announced) {
    const raw = cursor.take();
    output.phase = "content";
    output.markup(raw.slice(0, header));
    output.text(raw.slice(header));
    return false;
  }
  if (!good) yield* readRest(desk, routing, atHand);
  atHand.end(good ? "succeeded" : "failed");
  yield* readText(desk, routing, (raw) => output.markup(raw));
  return true;
}

/** What is left of a call whose arguments turned out bad, up to the end of its body: it goes out as the model wrote it. */
function* readRest({ cursor }: RoutedDesk, { body }: Routing, call: CallAtHand): Reading<void> {
  const rest = new Rest();
  const found = yield* readToMarker(cursor, body, (kept) => {
    const raw = cursor.take(kept);
    call.write(rest.add(raw), raw);
  });
  cursor.pos -= body.markers[found]?.length ?? 0;
  call.write(rest.end(undefined), "");
}

/** Reads a body up to its end, which `end` is told; a start of the next message is not passed. */
function* readText(
  { cursor, output }: RoutedDesk,
  { format, body }: Routing,
  text: (raw: string) => void,
  end: (raw: string) => void = (raw) => output.markup(raw),
): Reading<void> {
  for (;;) {
    const found = yield* readToMarker(cursor, body, (kept) => text(cursor.take(kept)));
    if (found < 0) return;
    if (found === format.ends.length) {
      cursor.pos -= format.start.length;
      return;
    }
    if (found < format.ends.length) return end(cursor.take());
    output.markup(cursor.take());
  }
}
