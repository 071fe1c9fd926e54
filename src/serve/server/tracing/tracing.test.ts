import { ROOT_CONTEXT, trace } from "@opentelemetry/api";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contextIn, headersOf } from "./tracing.ts";

const ids = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };

function read(headers: Readonly<Record<string, string>>): ReturnType<typeof trace.getSpanContext> {
  return trace.getSpanContext(contextIn((name) => headers[name]));
}

describe("a client's trace", () => {
  test("is continued with its state", () => {
    const hex = (length: number): fc.Arbitrary<string> =>
      fc
        .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
        .map((digits) => digits.join(""))
        .filter((text) => /[^0]/.test(text));
    fc.assert(
      fc.property(hex(32), hex(16), fc.constantFrom("00", "01"), (traceId, spanId, flags) => {
        const headers = { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: "vendor=1,other=2" };
        const context = read(headers);
        expect(context).toMatchObject({ traceId, spanId, isRemote: true });
        expect(context && headersOf(context)).toEqual(headers);
      }),
    );
  });

  // Source: W3C Trace Context, sections 3.2.2 and 4.3.
  test.each([
    ["nothing", undefined],
    ["another form", "yes"],
    ["capitals", `00-${ids.trace.toUpperCase()}-${ids.span}-01`],
    ["an id of zeros", `00-${"0".repeat(32)}-${ids.span}-01`],
    ["a span of zeros", `00-${ids.trace}-${"0".repeat(16)}-01`],
    ["the version that is none", `ff-${ids.trace}-${ids.span}-01`],
    ["more than version 00 may say", `00-${ids.trace}-${ids.span}-01-what`],
    ["two of them", `00-${ids.trace}-${ids.span}-01, 00-${ids.trace}-${ids.span}-01`],
  ])("is none where the header has %s", (_, traceparent) => {
    expect(contextIn((name) => (name === "traceparent" ? traceparent : undefined))).toBe(ROOT_CONTEXT);
  });

  test("of a later version is read as far as it is known", () => {
    expect(read({ traceparent: `01-${ids.trace}-${ids.span}-01-what` })).toMatchObject({ traceId: ids.trace });
  });
});
