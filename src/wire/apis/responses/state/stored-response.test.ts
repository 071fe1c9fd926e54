import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../core/events.ts";
import { runSync } from "../../../core/steps.ts";
import type { InTurns, Keyspace, Keyspaces } from "../../port-state.ts";
import { MapAssembled, MapKeyspace } from "../../../../../test/support/map-keyspaces.ts";
import { deleteConversation, putConversation } from "../../conversations/stored-conversation.ts";
import { lean } from "../../profile.ts";
import { ResponseIds } from "../ids.ts";
import { storedInputItems } from "./input-items.ts";
import { forgetHistory } from "./recall.ts";
import { readStoredRequest } from "./stored-request.ts";
import { deleteResponse, findItems, findResponse, storageKey } from "./stored-response.ts";

/** There are no others. */
const inTurns: InTurns = async (work) => runSync(work);

function emptyKeyspaces(): Keyspaces & { readonly stored: MapKeyspace } {
  return {
    stored: new MapKeyspace(),
    temporary: new MapKeyspace(),
    assembled: new MapAssembled(),
    ofConnection: false,
  };
}

/** Reads a request, writes the answer of these events and keeps it. */
async function keep(keyspaces: Keyspaces, body: object, events: readonly GenerationEvent[]): Promise<void> {
  const read = await readStoredRequest({ model: "m", ...body }, "req_1", {}, keyspaces, inTurns);
  const writer = read.streamWriter({
    profile: lean,
    created: 1_800_000_000,
    model: "m",
    settings: {},
    random: Math.random,
  });
  writer.write([...events, { type: "finish", choice: 0, reason: "stop" }, { type: "end", end: { kind: "done" } }]);
  await read.store();
}

const hello: GenerationEvent = { type: "text-delta", choice: 0, text: "Hello" };

describe("a stored response", () => {
  test("a response and its items have one key, another response another one", () => {
    const [one, other] = [new ResponseIds(Math.random), new ResponseIds(Math.random)];
    const id = one.response(1_800_000_000);
    for (const prefix of ["msg_", "rs_", "fc_"])
      expect(storageKey(one.item(prefix, 1_800_000_009))).toBe(storageKey(id));
    expect(storageKey(new ResponseIds(Math.random, id).item("msg_", 1_700_000_000))).toBe(storageKey(id));
    expect(storageKey(other.response(1_800_000_000))).not.toBe(storageKey(id));
    expect(storageKey("resp_another_server_abc")).toBe("resp_another_server_abc");
  });

  // `version resp_another_server_1` and `conversation conv_1` were read as responses, and the request failed with 503.
  test("no id of a client is the key of another kind of text", async () => {
    const keyspaces = emptyKeyspaces();
    await putConversation(keyspaces, { id: "conv_1", created: 1_800_000_000 }, []);
    await keep(keyspaces, { input: "x" }, [
      { type: "start", choice: 0, source: { id: "resp_another_server_1" } },
      hello,
    ]);
    const second: GenerationEvent = { type: "start", choice: 0, source: { id: "resp_another_server_2" } };
    await keep(keyspaces, { input: "x", previous_response_id: "resp_another_server_1" }, [second, hello]);
    await keep(keyspaces, { input: "x", previous_response_id: "resp_another_server_2" }, [hello]);
    const ids = [...keyspaces.stored.texts.keys()].filter((key) => key.includes(" "));
    expect(ids).toEqual(["conversation conv_1", "version resp_another_server_1"]);
    expect(await findItems(keyspaces, ids)).toEqual(new Map());
    for (const id of ids) expect(await findResponse(keyspaces, id)).toBeUndefined();
  });

  // A client that saw the end and continued the conversation missed the answer; one that had deleted the conversation had an error logged.
  test("a background response is complete when its items are in its conversation, if that still exists", async () => {
    const keyspaces = emptyKeyspaces();
    await putConversation(keyspaces, { id: "conv_1", created: 1_800_000_000 }, []);
    const statuses: string[] = [];
    let id = "";
    const append = keyspaces.stored.append.bind(keyspaces.stored);
    keyspaces.stored.append = async (key, text) => {
      const { body = "" } = (await findResponse(keyspaces, id))?.stored ?? {};
      statuses.push((JSON.parse(body) as { status: string }).status);
      return append(key, text);
    };
    const body = { model: "m", input: "x", conversation: "conv_1", background: true };
    for (const isDeleted of [false, true]) {
      const read = await readStoredRequest(body, "req_1", {}, keyspaces, inTurns);
      const context = { profile: lean, created: 1_800_000_000, model: "m", settings: {}, random: Math.random };
      const answer = read.detach?.(context);
      if (!answer) throw new Error("It is not in the background.");
      id = answer.id;
      await answer.beat();
      if (isDeleted) await deleteConversation(keyspaces, "conv_1");
      answer.writer.write([
        hello,
        { type: "finish", choice: 0, reason: "stop" },
        { type: "end", end: { kind: "done" } },
      ]);
      await answer.end("", false);
      const stored = (await findResponse(keyspaces, answer.id))?.stored.body ?? "";
      expect(JSON.parse(stored)).toMatchObject({ status: "completed" });
    }
    expect(statuses).toEqual(["in_progress", "in_progress"]);
  });

  // The type null was stored; the id of the type "constructor" began with the text of a function.
  test("items are stored with the type and the id that they are shown with", async () => {
    const items = [{ type: null, role: "user", content: "x" }, { type: "constructor" }, { type: "__proto__" }];
    const from = { responseId: "", created: 1_800_000_000, random: Math.random };
    expect(storedInputItems(items, new Map(), from)).toEqual([
      {
        id: expect.stringMatching(/^msg_\w{50}$/) as string,
        type: "message",
        status: "completed",
        role: "user",
        content: [{ type: "input_text", text: "x" }],
      },
      { id: expect.stringMatching(/^item_\w{50}$/) as string, type: "constructor" },
      { id: expect.stringMatching(/^item_\w{50}$/) as string, type: "__proto__" },
    ]);
  });

  // Ollama's ids are random numbers below a million. The second response took the place of the first, whose conversation was lost.
  test("responses and items to which another server gave the same short ids are kept apart", async () => {
    const keyspaces = emptyKeyspaces();
    for (const input of ["one", "two"])
      await keep(keyspaces, { input }, [
        { type: "start", choice: 0, source: { id: "resp_271828" } },
        { type: "part-start", choice: 0, kind: "text", id: "msg_314159" },
        hello,
      ]);
    const keys = [...keyspaces.stored.texts.keys()];
    expect(keys).toHaveLength(2);
    expect(keys.join()).not.toMatch(/271828|314159/);
    for (const [at, key] of keys.entries()) {
      const { id = "" } = JSON.parse(keyspaces.stored.texts.get(key)?.split("\n")[0] ?? "{}") as {
        readonly id?: string;
      };
      const found = await findResponse(keyspaces, id);
      expect(found?.stored.input).toMatchObject([{ content: [{ text: ["one", "two"][at] }] }]);
    }
  });

  // OpenAI gives the responses of one conversation common digits: the second took the place of the first, and the third request was refused.
  test("responses of a conversation whose ids begin alike, as OpenAI's, are all found, with their items, until they are deleted", async () => {
    const keyspaces = emptyKeyspaces();
    const chain = new ResponseIds(Math.random);
    const turns = Array.from({ length: 4 }, (_, at) => ({
      id: chain.response(1_800_000_000 + at),
      item: chain.item("msg_", 1_800_000_000 + at),
    }));
    for (const [at, { id, item }] of turns.entries()) {
      const previous = turns[at - 1];
      await keep(keyspaces, { input: `question ${at}`, ...(previous && { previous_response_id: previous.id }) }, [
        { type: "start", choice: 0, source: { id } },
        { type: "part-start", choice: 0, kind: "text", id: item },
        { type: "text-delta", choice: 0, text: `answer ${at}` },
      ]);
    }
    const next = { model: "m", input: "?", previous_response_id: turns.at(-1)?.id };
    const { request } = await readStoredRequest(next, "req_2", {}, keyspaces, inTurns);
    const texts = JSON.stringify(request.prompt).match(/(?:question|answer) \d/g);
    expect(texts).toEqual(turns.flatMap((_, at) => [`question ${at}`, `answer ${at}`]));
    const found = await Promise.all(turns.map(({ id }) => findResponse(keyspaces, id)));
    const inputs = found.map((one) => String(one?.stored.input[0]?.["id"]));
    const ids = [...turns.map(({ item }) => item), ...inputs];
    expect([...(await findItems(keyspaces, ids)).keys()].toSorted()).toEqual(ids.toSorted());
    for (const one of found) if (one) await deleteResponse(keyspaces.stored, one.stored);
    expect([...keyspaces.stored.texts.keys()].filter((key) => !key.startsWith("version "))).toEqual([]);
  });

  test("items whose ids another server made are found by them, until the response is deleted", async () => {
    const keyspaces = emptyKeyspaces();
    await keep(keyspaces, { input: "x" }, [
      { type: "start", choice: 0, source: { id: "resp_another_server_abc" } },
      { type: "part-start", choice: 0, kind: "text", id: "msg_another_server_xyz" },
      hello,
    ]);
    const items = await findItems(keyspaces, ["msg_another_server_xyz", "msg_none"]);
    expect([...items.keys()]).toEqual(["msg_another_server_xyz"]);
    expect(items.get("msg_another_server_xyz")).toMatchObject({
      id: "msg_another_server_xyz",
      content: [{ text: "Hello" }],
    });
    expect(await findResponse(keyspaces, "msg_another_server_xyz")).toBeUndefined();
    const found = await findResponse(keyspaces, "resp_another_server_abc");
    if (!found) throw new Error("it is stored");
    await deleteResponse(keyspaces.stored, found.stored);
    expect([...keyspaces.stored.texts.keys()]).toEqual([]);
  });

  test("reasoning comes back with the encrypted content that the client did not see", async () => {
    const keyspaces = emptyKeyspaces();
    await keep(keyspaces, { input: "x" }, [
      { type: "start", choice: 0, source: { id: "resp_another_server_abc" } },
      { type: "reasoning-delta", choice: 0, text: "Hm." },
      { type: "part-end", choice: 0, state: { kind: "signature", value: "signed" } },
      hello,
    ]);
    expect((await findResponse(keyspaces, "resp_another_server_abc"))?.stored.body).not.toContain("encrypted_content");
    const next = { model: "m", input: "y", previous_response_id: "resp_another_server_abc" };
    const { request } = await readStoredRequest(next, "req_2", {}, keyspaces, inTurns);
    expect(request.prompt).toMatchObject({
      messages: [
        { role: "user" },
        {
          content: [
            { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "signed" } },
            { type: "text", text: "Hello" },
          ],
        },
        { role: "user", content: "y" },
      ],
    });
  });

  // Each of 20,000 references to one stored conversation of 10 MB was looked up by parsing all of it: the server answered nothing else for an hour.
  test("however many items of a response are referred to, it is read once; and each may be meant once", async () => {
    const keyspaces = emptyKeyspaces();
    const input = Array.from({ length: 50 }, (_, at) => ({ id: `msg_${at}`, role: "user", content: `text ${at}` }));
    await keep(keyspaces, { input }, [{ type: "start", choice: 0, source: { id: "resp_another_server_abc" } }, hello]);
    const [own] = Object.values(
      JSON.parse(keyspaces.stored.texts.get("resp_another_server_abc")?.split("\n", 1)[0] ?? "") as object,
    );
    expect(own).toBe("resp_another_server_abc");
    for (let at = 0; at < 50; at++) keyspaces.stored.texts.set(`msg_${at}`, ">resp_another_server_abc");
    let reads = 0;
    const counted = {
      ...keyspaces,
      stored: {
        get: (key: string) => {
          if (key === "resp_another_server_abc") reads++;
          return keyspaces.stored.get(key);
        },
        set: (key: string, text: string | Iterable<string>) => keyspaces.stored.set(key, text),
        delete: (key: string) => keyspaces.stored.delete(key),
        readFrom: (key: string, from: number) => keyspaces.stored.readFrom(key, from),
        append: (key: string, text: string) => keyspaces.stored.append(key, text),
      },
    };
    const references = input.map(({ id }) => ({ type: "item_reference", id }));
    const { request } = await readStoredRequest({ model: "m", input: references }, "req_2", {}, counted, inTurns);
    expect(request.prompt.kind === "chat" && request.prompt.messages).toMatchObject(
      input.map(({ content }) => ({ role: "user", content: [{ type: "text", text: content }] })),
    );
    expect(reads).toBe(1);
    const twice = { model: "m", input: [...references, references[7]] };
    await expect(readStoredRequest(twice, "req_3", {}, keyspaces, inTurns)).rejects.toThrow(
      "Duplicate item found with id msg_7. Remove duplicate items from your input and try again.",
    );
  });

  describe("a conversation of many responses", () => {
    const start = (turn: number | string): GenerationEvent => ({
      type: "start",
      choice: 0,
      source: { id: `resp_another_server_${turn}` },
    });
    const add = (keyspaces: Keyspaces, turn: number | string, previous?: number | string): Promise<void> =>
      keep(
        keyspaces,
        {
          input: `turn ${turn}`,
          ...(previous !== undefined && { previous_response_id: `resp_another_server_${previous}` }),
        },
        [start(turn), hello],
      );
    /** What the user said in the turns up to this one. */
    const saidBefore = async (keyspaces: Keyspaces, turn: number | string): Promise<unknown[]> => {
      const body = { model: "m", input: "next", previous_response_id: `resp_another_server_${turn}` };
      const { request } = await readStoredRequest(body, "req_2", {}, keyspaces, inTurns);
      if (request.prompt.kind !== "chat") throw new Error("Expected a chat.");
      return request.prompt.messages.flatMap(({ role, content }) => {
        const [part] = content as readonly { readonly text?: string }[];
        return role === "user" ? [typeof content === "string" ? content : part?.text] : [];
      });
    };
    const turns = (...names: (number | string)[]): string[] => [...names.map((name) => `turn ${name}`), "next"];
    const forget = async (keyspaces: Keyspaces, turn: number): Promise<void> => {
      const found = await findResponse(keyspaces, `resp_another_server_${turn}`);
      if (!found) throw new Error(`Expected response ${turn}.`);
      await deleteResponse(keyspaces.stored, found.stored);
      await forgetHistory(keyspaces, found.stored);
    };
    /** Another process with the same store. */
    const elsewhere = (keyspaces: Keyspaces): Keyspaces => ({ ...keyspaces, assembled: new MapAssembled() });
    const notFound = (turn: number): string => `Previous response with id 'resp_another_server_${turn}' not found.`;

    // Each response kept the ids of all before it, and read all of them: 400 turns took 5.2 MB, and turn 1,000 took 141 ms.
    test("each turn reads and writes the same, however many were before it", async () => {
      const keyspaces = emptyKeyspaces();
      const { stored } = keyspaces;
      let [reads, charactersRead] = [0, 0];
      const counting: Keyspaces = {
        ...keyspaces,
        stored: {
          set: (key, text) => stored.set(key, text),
          delete: (key) => stored.delete(key),
          readFrom: (key, from) => stored.readFrom(key, from),
          append: (key, text) => stored.append(key, text),
          async get(key) {
            const text = await stored.get(key);
            reads++;
            charactersRead += text?.length ?? 0;
            return text;
          },
        },
      };
      const costs: { reads: number; charactersRead: number; kept: number }[] = [];
      for (let turn = 0; turn < 400; turn++) {
        [reads, charactersRead] = [0, 0];
        await add(counting, turn, turn > 0 ? turn - 1 : undefined);
        const kept = stored.texts.get(`resp_another_server_${turn}`)?.length ?? 0;
        if (turn >= 390 || (turn >= 100 && turn < 110)) costs.push({ reads, charactersRead, kept });
      }
      for (const cost of costs) {
        expect(cost.reads).toBe(2);
        expect(cost.charactersRead).toBeLessThan(4000);
        expect(cost.kept).toBeLessThan(4000);
      }
      expect(await saidBefore(counting, 399)).toEqual(turns(...Array.from({ length: 400 }).keys()));
      // A process that has assembled nothing reads each response once.
      reads = 0;
      await saidBefore(elsewhere(counting), 399);
      expect(reads).toBeLessThan(410);
    });

    test.each([0, 1, 2])("deleting response %d of four is noticed immediately, in every process", async (deleted) => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 4; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      const other = elsewhere(keyspaces);
      for (const each of [keyspaces, other]) expect(await saidBefore(each, 3)).toEqual(turns(0, 1, 2, 3));
      await forget(keyspaces, deleted);
      for (const each of [keyspaces, other, elsewhere(keyspaces)]) {
        for (const turn of [2, 3]) await expect(saidBefore(each, turn)).rejects.toThrow(notFound(turn));
        if (deleted === 2) expect(await saidBefore(each, 1)).toEqual(turns(0, 1));
      }
    });

    test("a deleted response stays unknown if a turn begins while it is deleted", async () => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 3; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      const other = elsewhere(keyspaces);
      expect(await saidBefore(other, 2)).toEqual(turns(0, 1, 2));
      await forget(keyspaces, 1);
      // This assembles what is left under a new version.
      await expect(saidBefore(keyspaces, 2)).rejects.toThrow(notFound(2));
      await expect(saidBefore(other, 2)).rejects.toThrow(notFound(2));
    });

    test("each branch of a conversation has its own history", async () => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 3; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      await add(keyspaces, "left", 1);
      await add(keyspaces, "right", 1);
      for (let round = 0; round < 2; round++) {
        expect(await saidBefore(keyspaces, "left")).toEqual(turns(0, 1, "left"));
        expect(await saidBefore(keyspaces, "right")).toEqual(turns(0, 1, "right"));
        expect(await saidBefore(keyspaces, 2)).toEqual(turns(0, 1, 2));
      }
      const all = await Promise.all(["left", "right", 2, 1].map((turn) => saidBefore(elsewhere(keyspaces), turn)));
      expect(all).toEqual([turns(0, 1, "left"), turns(0, 1, "right"), turns(0, 1, 2), turns(0, 1)]);
    });

    test("branches that are read concurrently do not mix", async () => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 3; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      for (const branch of ["a", "b", "c"]) {
        await add(keyspaces, `${branch}0`, 1);
        await add(keyspaces, `${branch}1`, `${branch}0`);
      }
      const slow = elsewhere({
        ...keyspaces,
        stored: {
          set: (key, text) => keyspaces.stored.set(key, text),
          delete: (key) => keyspaces.stored.delete(key),
          readFrom: (key, from) => keyspaces.stored.readFrom(key, from),
          append: (key, text) => keyspaces.stored.append(key, text),
          async get(key) {
            await new Promise((resolve) => setImmediate(resolve));
            return keyspaces.stored.get(key);
          },
        },
      });
      for (let round = 0; round < 3; round++) {
        const all = await Promise.all(["a1", "b1", "c1", 2].map((turn) => saidBefore(slow, turn)));
        const of = (branch: string): string[] => turns(0, 1, `${branch}0`, `${branch}1`);
        expect(all).toEqual([of("a"), of("b"), of("c"), turns(0, 1, 2)]);
      }
    });

    test("responses that an earlier version kept, with the ids of all before them, go on", async () => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 3; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      for (let turn = 0; turn < 3; turn++) {
        const [head = "", body = ""] = keyspaces.stored.texts.get(`resp_another_server_${turn}`)?.split("\n") ?? [];
        const { previous: _, root: __, ...rest } = JSON.parse(head) as Record<string, unknown>;
        const chain = Array.from({ length: turn }, (_, at) => `resp_another_server_${at}`);
        keyspaces.stored.texts.set(`resp_another_server_${turn}`, `${JSON.stringify({ ...rest, chain })}\n${body}`);
      }
      await add(keyspaces, 3, 2);
      expect(await saidBefore(keyspaces, 3)).toEqual(turns(0, 1, 2, 3));
    });

    test("a store that takes nothing more still has its conversations", async () => {
      const keyspaces = emptyKeyspaces();
      for (let turn = 0; turn < 3; turn++) await add(keyspaces, turn, turn > 0 ? turn - 1 : undefined);
      keyspaces.stored.texts.delete("version resp_another_server_0");
      const full = elsewhere({
        ...keyspaces,
        stored: {
          get: (key) => keyspaces.stored.get(key),
          delete: (key) => keyspaces.stored.delete(key),
          set: () => Promise.reject(new Error("ENOSPC")),
          readFrom: (key, from) => keyspaces.stored.readFrom(key, from),
          append: () => Promise.reject(new Error("ENOSPC")),
        },
      });
      expect(await saidBefore(full, 2)).toEqual(turns(0, 1, 2));
    });

    // A connection's own copies are complete, so each response that was kept for good as well held all before it once more.
    test("on a connection, what is kept for good is linked, too", async () => {
      const keyspaces = emptyKeyspaces();
      const connection: Keyspaces = { ...keyspaces, ofConnection: true };
      for (let turn = 0; turn < 30; turn++) await add(connection, turn, turn > 0 ? turn - 1 : undefined);
      const sizes = Array.from(
        { length: 29 },
        (_, at) => keyspaces.stored.texts.get(`resp_another_server_${at + 1}`)?.length ?? 0,
      );
      // The fingerprint of a longer conversation has more groups.
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(1000);
      expect(await saidBefore({ ...keyspaces, temporary: new MapKeyspace() }, 29)).toEqual(
        turns(...Array.from({ length: 30 }).keys()),
      );
    });
  });

  test("an upstream of the same API gets the items of a conversation, and a conversation that only it may know", async () => {
    const keyspaces = emptyKeyspaces();
    const message = { id: "msg_1", type: "message", role: "user", content: "one" };
    await putConversation(keyspaces, { id: "conv_1", created: 1 }, [{ items: [message] }]);
    const bodyFor = async (conversation: string): Promise<unknown> => {
      const body = { model: "m", input: "two", conversation };
      const { request } = await readStoredRequest(body, "req_1", { forwards: true }, keyspaces, inTurns);
      return request.passthrough?.body;
    };
    const own = { role: "user", content: "two" };
    expect(await bodyFor("conv_1")).toEqual({ model: "m", input: [message, own] });
    expect(await bodyFor("conv_2")).toEqual({ model: "m", input: "two", conversation: "conv_2" });
  });

  test("nothing is read or stored if the request does not ask for it", async () => {
    const unreachable: Keyspace = {
      get: () => Promise.reject(new Error("read")),
      set: () => Promise.reject(new Error("written")),
      readFrom: () => Promise.reject(new Error("read")),
      append: () => Promise.reject(new Error("written")),
      delete: () => Promise.reject(new Error("deleted")),
    };
    const keyspaces = {
      stored: unreachable,
      temporary: unreachable,
      assembled: new MapAssembled(),
      ofConnection: false,
    };
    await expect(keep(keyspaces, { input: "x", store: false }, [hello])).resolves.toBeUndefined();
    await expect(keep(keyspaces, { input: "x" }, [hello])).rejects.toThrow("written");
  });
});
