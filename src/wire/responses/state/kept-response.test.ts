import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../generation/event.ts";
import { atOnce } from "../../../generation/steps.ts";
import type { InTurns, Shelf, Shelves } from "../../port-state.ts";
import { lean } from "../../profile.ts";
import { ResponseIds } from "../ids.ts";
import { readKeptRequest } from "./kept-request.ts";
import { deleteResponse, findItems, findResponse, keyOf } from "./kept-response.ts";

class MapShelf implements Shelf {
  readonly texts = new Map<string, string>();

  async get(key: string): Promise<string | undefined> {
    return this.texts.get(key);
  }

  async set(key: string, text: string | Iterable<string>): Promise<void> {
    this.texts.set(key, typeof text === "string" ? text : [...text].join(""));
  }

  async delete(key: string): Promise<boolean> {
    return this.texts.delete(key);
  }
}

/** There are no others. */
const inTurns: InTurns = async (work) => atOnce(work);

function emptyShelves(): Shelves & { readonly lasting: MapShelf } {
  return { lasting: new MapShelf(), brief: new MapShelf(), ofConnection: false };
}

/** Reads a request, writes the answer of these events and keeps it. */
async function keep(shelves: Shelves, body: object, events: readonly GenerationEvent[]): Promise<void> {
  const read = await readKeptRequest({ model: "m", ...body }, "req_1", {}, shelves, inTurns);
  const writer = read.streamWriter({
    profile: lean,
    created: 1_800_000_000,
    model: "m",
    settings: {},
    random: Math.random,
  });
  writer.write([...events, { type: "finish", choice: 0, reason: "stop" }, { type: "end", end: { kind: "done" } }]);
  await read.keep();
}

const hello: GenerationEvent = { type: "text-delta", choice: 0, text: "Hello" };

describe("what is kept of a response", () => {
  test("a response and its items have one key, another response another one", () => {
    const [one, other] = [new ResponseIds(Math.random), new ResponseIds(Math.random)];
    const id = one.response(1_800_000_000);
    for (const prefix of ["msg_", "rs_", "fc_"]) expect(keyOf(one.item(prefix, 1_800_000_009))).toBe(keyOf(id));
    expect(keyOf(ResponseIds.of(id, Math.random).item("msg_", 1_700_000_000))).toBe(keyOf(id));
    expect(keyOf(other.response(1_800_000_000))).not.toBe(keyOf(id));
    expect(keyOf("resp_abc")).toBe("resp_abc");
  });

  test("items whose ids another server made are found by them, until the response is deleted", async () => {
    const shelves = emptyShelves();
    await keep(shelves, { input: "x" }, [
      { type: "start", choice: 0, source: { id: "resp_abc" } },
      { type: "part-start", choice: 0, kind: "text", id: "msg_xyz" },
      hello,
    ]);
    const items = await findItems(shelves, ["msg_xyz", "msg_none"]);
    expect([...items.keys()]).toEqual(["msg_xyz"]);
    expect(items.get("msg_xyz")).toMatchObject({ id: "msg_xyz", content: [{ text: "Hello" }] });
    expect(await findResponse(shelves, "msg_xyz")).toBeUndefined();
    const found = await findResponse(shelves, "resp_abc");
    if (!found) throw new Error("it is kept");
    await deleteResponse(shelves.lasting, found.kept);
    expect([...shelves.lasting.texts.keys()]).toEqual([]);
  });

  test("thoughts come back with what their maker needs to read them, which the client did not see", async () => {
    const shelves = emptyShelves();
    await keep(shelves, { input: "x" }, [
      { type: "start", choice: 0, source: { id: "resp_abc" } },
      { type: "reasoning-delta", choice: 0, text: "Hm." },
      { type: "part-end", choice: 0, signature: "signed" },
      hello,
    ]);
    expect((await findResponse(shelves, "resp_abc"))?.kept.body).not.toContain("encrypted_content");
    const next = { model: "m", input: "y", previous_response_id: "resp_abc" };
    const { request } = await readKeptRequest(next, "req_2", {}, shelves, inTurns);
    expect(request.prompt).toMatchObject({
      messages: [
        { role: "user" },
        {
          content: [
            { type: "reasoning", text: "Hm.", signature: "signed" },
            { type: "text", text: "Hello" },
          ],
        },
        { role: "user", content: "y" },
      ],
    });
  });

  // Each of 20,000 references to one stored conversation of 10 MB was looked up by parsing all of it: the server stood still for an hour.
  test("however many items of a response are referred to, it is read once; and each may be meant once", async () => {
    const shelves = emptyShelves();
    const input = Array.from({ length: 50 }, (_, at) => ({ id: `msg_${at}`, role: "user", content: `text ${at}` }));
    await keep(shelves, { input }, [{ type: "start", choice: 0, source: { id: "resp_abc" } }, hello]);
    const [own] = Object.values(JSON.parse(shelves.lasting.texts.get("resp_abc")?.split("\n", 1)[0] ?? "") as object);
    expect(own).toBe("resp_abc");
    for (let at = 0; at < 50; at++) shelves.lasting.texts.set(`msg_${at}`, ">resp_abc");
    let reads = 0;
    const counted = {
      ...shelves,
      lasting: {
        get: (key: string) => {
          if (key === "resp_abc") reads++;
          return shelves.lasting.get(key);
        },
        set: (key: string, text: string | Iterable<string>) => shelves.lasting.set(key, text),
        delete: (key: string) => shelves.lasting.delete(key),
      },
    };
    const references = input.map(({ id }) => ({ type: "item_reference", id }));
    const { request } = await readKeptRequest({ model: "m", input: references }, "req_2", {}, counted, inTurns);
    expect(request.prompt.kind === "chat" && request.prompt.messages).toMatchObject(
      input.map(({ content }) => ({ role: "user", content: [{ type: "text", text: content }] })),
    );
    expect(reads).toBe(1);
    const twice = { model: "m", input: [...references, references[7]] };
    await expect(readKeptRequest(twice, "req_3", {}, shelves, inTurns)).rejects.toThrow(
      "Duplicate item found with id msg_7. Remove duplicate items from your input and try again.",
    );
  });

  test("a chain is kept link by link, and is as long as one likes", async () => {
    const shelves = emptyShelves();
    const start = (turn: number): GenerationEvent => ({ type: "start", choice: 0, source: { id: `resp_${turn}` } });
    const turns = 200;
    for (let turn = 0; turn < turns; turn++) {
      const previous = turn > 0 && { previous_response_id: `resp_${turn - 1}` };
      await keep(shelves, { input: "x".repeat(1000), ...previous }, [start(turn), hello]);
    }
    const size = [...shelves.lasting.texts.values()].reduce((sum, text) => sum + text.length, 0);
    expect(size).toBeLessThan(turns * (1000 + 3000) + (turns * turns * "resp_199,,,".length) / 2);
    const next = { model: "m", input: "y", previous_response_id: `resp_${turns - 1}` };
    const { request } = await readKeptRequest(next, "req_2", {}, shelves, inTurns);
    expect(request.prompt.kind === "chat" && request.prompt.messages.length).toBe(2 * turns + 1);
  });

  test("nothing is read or kept where nothing is asked for", async () => {
    const unreachable: Shelf = {
      get: () => Promise.reject(new Error("read")),
      set: () => Promise.reject(new Error("written")),
      delete: () => Promise.reject(new Error("deleted")),
    };
    const shelves = { lasting: unreachable, brief: unreachable, ofConnection: false };
    await expect(keep(shelves, { input: "x", store: false }, [hello])).resolves.toBeUndefined();
    await expect(keep(shelves, { input: "x" }, [hello])).rejects.toThrow("written");
  });
});
