import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { after, bodies, cutAfter, eventsIn, idOf, open, post } from "./support.ts";
import type { Part } from "./support.ts";

// A connection that was lost ended the answer: its client had to send the request again, and got another answer from its beginning.

/** An event without what differs between two answers to the same request. */
function plain(event: string): string {
  return event
    .replace(/^id: \d+\n/, "")
    .replaceAll(/(?:chatcmpl|cmpl|msg|resp|item|rs|gen)[-_]\w+/g, "ID")
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0');
}

const texts = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 12 });

describe.each(Object.keys(bodies))("%s", (path) => {
  test("wherever the connection is cut, and however often, the parts are the uninterrupted stream", async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.array(fc.nat(1500), { minLength: 1, maxLength: 5 }), async (said, cuts) => {
        const { server, url, allow } = await open(said);
        let allowed = 0;
        /** Lets the engine write on until the connection has been cut. */
        const writing = async (part: Promise<Part>): Promise<Part> => {
          const state = { isCut: false };
          const cut = part.finally(() => (state.isCut = true));
          for (; !state.isCut; await new Promise(setImmediate)) allow(++allowed);
          return cut;
        };
        const [first = 0, ...others] = cuts;
        const begun = await writing(cutAfter(url, `/v1/${path}`, post(path), first));
        expect([begun.status, begun.headers["x-truewire-resume"]]).toEqual([200, "60s"]);
        const place = `/v1/streams/${begun.headers["x-request-id"]}`;
        const parts = [...begun.events];
        for (const bytes of others) {
          const part = await writing(cutAfter(url, place, { headers: after(parts) }, bytes));
          expect([200, 204]).toContain(part.status);
          parts.push(...part.events);
        }
        allow(Number.POSITIVE_INFINITY);
        const rest = await fetch(url + place, { headers: after(parts) });
        if (rest.status !== 204) parts.push(...eventsIn(await rest.text()));
        const plainAnswer = await fetch(`${url}/v1/${path}`, post(path, { "x-truewire-resume": "0" }));
        const uninterrupted = eventsIn(await plainAnswer.text());
        expect(parts.map(plain)).toEqual(uninterrupted.map(plain));
        expect(parts.map(idOf)).toEqual([...parts.keys()]);
        expect(uninterrupted.some((event) => event.startsWith("id:"))).toBe(false);
        await server.close(0);
      }),
      { numRuns: 25 },
    );
  });
});
