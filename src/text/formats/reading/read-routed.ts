import type { FormatRoute, RoutedFormat } from "../format.ts";
import { CallWriter, type ParseContext, RestOfCall } from "./call-output.ts";
import { compileFormat } from "./compiled-format.ts";
import type { Parser } from "./cursor.ts";
import { MarkerSet, matchMarker, readBeforeMarker, readName, readToMarker } from "./marker-set.ts";
import { readPlain } from "./read-content.ts";
import { streamJson } from "./read-json.ts";

/** The markers and header patterns of a routed format, compiled once. */
interface CompiledRoutes {
  readonly format: RoutedFormat;
  readonly start: MarkerSet;
  /** What ends a header: its end marker first; the others show that it is not a header. */
  readonly header: MarkerSet;
  /** What ends a body: its end markers, then the start of another message, then stripped tokens. */
  readonly body: MarkerSet;
  readonly routes: readonly { readonly header: RegExp; readonly to: FormatRoute["to"] }[];
}

const compiled = new WeakMap<RoutedFormat, CompiledRoutes>();

function compileRoutes(format: RoutedFormat): CompiledRoutes {
  let found = compiled.get(format);
  if (!found) {
    found = {
      format,
      start: new MarkerSet([format.start]),
      header: new MarkerSet([format.headerEnd, format.start, ...format.ends]),
      body: new MarkerSet([...format.ends, format.start, ...(format.strip ?? [])]),
      routes: format.routes.map(({ header, to }) => ({ header: new RegExp(header), to })),
    };
    compiled.set(format, found);
  }
  return found;
}

interface RoutedContext extends Omit<ParseContext, "format"> {
  readonly compiled: CompiledRoutes;
}

/** Maximum length of a header: bounds what is held back. */
const maxHeaderLength = 600;

/** Reads messages with headers up to the end of the text. `prefix`: the end of the prompt, which may have begun a header. */
export function* readRouted(
  shared: Omit<RoutedContext, "compiled">,
  format: RoutedFormat,
  prefix?: string,
): Parser<void> {
  const context: RoutedContext = { ...shared, compiled: compileRoutes(format) };
  const { cursor, output } = context;
  let begun = prefix?.includes(format.start)
    ? prefix.slice(prefix.lastIndexOf(format.start) + format.start.length)
    : "";
  const headerEnd = begun.indexOf(format.headerEnd);
  if (headerEnd >= 0) {
    yield* readBody(context, begun.slice(0, headerEnd));
    begun = "";
  }
  for (;;) {
    const header = yield* readHeader(context, begun);
    begun = "";
    if (header !== null) yield* readBody(context, header);
    else {
      // Not a header: visible text.
      output.text(cursor.take());
      if ((yield* cursor.peek()) < 0) return;
      yield* readText(context, (raw) => output.text(raw));
    }
    if ((yield* cursor.peek()) < 0) return;
  }
}

/** Reads up to the header's end. Returns the header, whose raw text is pending, or null if it is not a header. */
function* readHeader(
  { cursor, output, compiled: { format, start, header } }: RoutedContext,
  begun: string,
): Parser<string | null> {
  yield* cursor.skipSpace();
  // The start marker belongs to the header.
  const startLength = (yield* matchMarker(cursor, start)) >= 0 ? cursor.pending : 0;
  const max = maxHeaderLength - begun.length;
  const read = yield* readName(cursor, header, max, (code) => code === 10 && format.headerEnd !== "\n");
  if (read?.end === 0) return begun + read.text;
  if (read) cursor.pos -= header.length(read.end);
  output.markup(cursor.take(cursor.pending - startLength));
  return null;
}

/** Reads the body of a message, whose header is pending, as its route says. */
function* readBody(context: RoutedContext, header: string): Parser<void> {
  const { cursor, output, callsAllowed, compiled } = context;
  const { to, name } = routeOf(compiled, header);
  if (typeof to !== "string") {
    if (callsAllowed && "id" in to) {
      output.markup(cursor.take());
      const plain = { ...context, format: compileFormat(to) };
      yield* readPlain(plain, { place: "outside", assumed: false }, [...compiled.format.ends, compiled.format.start]);
      output.markup(cursor.take());
      return;
    }
    if (callsAllowed && (yield* readCallBody(context, name))) return;
    if (!callsAllowed) output.markup(cursor.take());
    return yield* readText(context, (raw) => output.text(raw));
  }
  if (to === "reasoning") {
    output.startReasoning(cursor.take());
    yield* readText(
      context,
      (raw) => output.reasoning(raw),
      (raw) => output.endReasoning(raw),
    );
    if (output.phase === "reasoning" && !cursor.ended) output.endReasoning("");
    return;
  }
  output.markup(cursor.take());
  yield* readText(context, (raw) => (to === "drop" ? output.markup(raw) : output.text(raw)));
}

function routeOf({ routes }: CompiledRoutes, header: string): { to: FormatRoute["to"]; name: string } {
  for (const { header: pattern, to } of routes) {
    const found = pattern.exec(header);
    if (found) return { to, name: found.groups?.["name"]?.trim() ?? "" };
  }
  return { to: "content", name: "" };
}

/** Reads the JSON of a call. Returns false, with the header consumed and the text visible, if it is not JSON. */
function* readCallBody(context: RoutedContext, name: string): Parser<boolean> {
  const { cursor, output, compiled } = context;
  const headerLength = cursor.pending;
  output.phase = "call";
  const call = new CallWriter(context, { name });
  const code = yield* cursor.skipSpace();
  const valid = code === 123 && name !== "" && (yield* streamJson(cursor, call));
  if (!call.started) {
    const raw = cursor.take();
    output.phase = "content";
    output.markup(raw.slice(0, headerLength));
    output.text(raw.slice(headerLength));
    return false;
  }
  if (!valid) {
    // The rest of the body is emitted as the model wrote it.
    const rest = new RestOfCall();
    yield* readBeforeMarker(cursor, compiled.body, (raw) => call.write(rest.add(raw), raw));
    call.write(rest.end(undefined), "");
  }
  call.end(valid ? "succeeded" : "failed");
  yield* readText(context, (raw) => output.markup(raw));
  return true;
}

/** Reads a body up to its end marker, which is passed to `end`, or before the start of the next message. */
function* readText(
  { cursor, output, compiled: { format, body } }: RoutedContext,
  text: (raw: string) => void,
  end: (raw: string) => void = (raw) => output.markup(raw),
): Parser<void> {
  for (;;) {
    const found = yield* readToMarker(cursor, body, text);
    if (found < 0) return;
    if (found === format.ends.length) {
      cursor.pos -= format.start.length;
      return;
    }
    if (found < format.ends.length) return end(cursor.take());
    output.markup(cursor.take());
  }
}
