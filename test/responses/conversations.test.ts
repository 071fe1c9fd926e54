import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, redisCommand, startRedis } from "../support/redis-server.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-conversations-"));
const program = join(folder, "program.mjs");
// Says what it was told, one message after the other.
writeFileSync(
  program,
  `const said = (content) => (typeof content === "string" ? content : (content ?? []).map(({ text = "" }) => text).join(""));
  export default async function* ({ messages }) {
    const texts = messages.map(({ content }) => said(content));
    if (texts.at(-1) === "fail") throw new Error("failed");
    yield texts.join("|");
  }`,
);
const keysFile = join(folder, "keys.yaml");
const hash = (key: string): string => createHash("sha256").update(key).digest("hex");
writeFileSync(keysFile, ["alice", "bob"].map((name) => `- { name: ${name}, hash: "sha256:${hash(name)}" }\n`).join(""));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const model = "program";

interface Place {
  readonly name: string;
  readonly args: () => Promise<readonly string[]>;
  readonly isMissing?: boolean;
}

const closing: (() => unknown)[] = [];
const places: readonly Place[] = [
  { name: "in memory", args: async () => [] },
  { name: "in a folder", args: async () => ["--store", join(folder, "store")] },
  {
    name: "in Redis",
    isMissing: redisCommand() === undefined,
    args: async () => {
      const port = await freePort();
      const redis = await startRedis(port);
      closing.push(() => redis.kill("SIGKILL"));
      return ["--store", `redis://127.0.0.1:${port}`];
    },
  },
];
afterAll(() => closing.forEach((close) => close()));

describe.each(places)("conversations $name", ({ args, isMissing = false }) => {
  describe.skipIf(isMissing)("by the openai SDK", () => {
    let server: RunningTruewire;
    let options: readonly string[];
    let alice: OpenAI;
    let bob: OpenAI;
    const clientOf = (apiKey: string): OpenAI => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
    beforeAll(async () => {
      options = [program, "--keys-file", keysFile, ...(await args())];
      server = await startTruewire(options);
      [alice, bob] = [clientOf("alice"), clientOf("bob")];
    });
    afterAll(() => server.stop());

    const user = (content: string) => ({ type: "message" as const, role: "user" as const, content });
    const textsOf = async (id: string, query: object = {}): Promise<unknown[]> => {
      const texts: unknown[] = [];
      for await (const item of alice.conversations.items.list(id, { order: "asc", ...query }))
        texts.push(
          item.type === "message" && "text" in (item.content[0] ?? {})
            ? (item.content[0] as { text: string }).text
            : item.type,
        );
      return texts;
    };

    test("a conversation is created, retrieved, updated and deleted", async () => {
      const created = await alice.conversations.create({ metadata: { topic: "demo" }, items: [user("one")] });
      expect(created).toMatchObject({ object: "conversation", metadata: { topic: "demo" } });
      expect(created.id).toMatch(/^conv_[0-9a-f]{48}$/);
      expect(Object.keys(created)).toEqual(["id", "object", "created_at", "metadata"]);
      expect(await alice.conversations.retrieve(created.id)).toEqual(created);
      const updated = await alice.conversations.update(created.id, { metadata: { topic: "other" } });
      expect(updated).toEqual({ ...created, metadata: { topic: "other" } });
      expect(await alice.conversations.retrieve(created.id)).toEqual(updated);
      const deleted = { id: created.id, object: "conversation.deleted", deleted: true };
      expect(await alice.conversations.delete(created.id)).toEqual(deleted);
      await expect(alice.conversations.retrieve(created.id)).rejects.toMatchObject({
        status: 404,
        message: `404 Conversation with id '${created.id}' not found.`,
        type: "invalid_request_error",
        code: null,
      });
      await expect(alice.conversations.delete(created.id)).rejects.toMatchObject({ status: 404 });
      // An addition creates nothing.
      await expect(alice.conversations.items.create(created.id, { items: [user("x")] })).rejects.toMatchObject({
        status: 404,
      });
    });

    test("one without a body is empty, and another key does not find it", async () => {
      const { id, metadata } = await alice.conversations.create();
      expect(metadata).toEqual({});
      expect(await textsOf(id)).toEqual([]);
      for (const request of [
        () => bob.conversations.retrieve(id),
        () => bob.conversations.update(id, { metadata: {} }),
        () => bob.conversations.delete(id),
        () => bob.conversations.items.list(id),
        () => bob.conversations.items.create(id, { items: [user("x")] }),
        () => bob.responses.create({ model, input: "x", conversation: id }),
      ])
        await expect(request()).rejects.toMatchObject({ status: 404 });
      expect(await alice.conversations.retrieve(id)).toMatchObject({ id });
    });

    test("items are added, listed by pages, retrieved and deleted", async () => {
      const { id } = await alice.conversations.create({ items: [user("first")] });
      const names = Array.from({ length: 20 }, (_, at) => `text ${at}`);
      const added = await alice.conversations.items.create(id, { items: names.map(user) });
      expect(added.data.map(({ id }) => id)).toEqual(expect.arrayContaining([added.first_id, added.last_id]));
      expect(added).toMatchObject({ object: "list", has_more: false });
      expect(added.data[0]).toMatchObject({
        type: "message",
        status: "completed",
        role: "user",
        content: [{ type: "input_text", text: "text 0" }],
      });
      expect(await textsOf(id, { limit: 3 })).toEqual(["first", ...names]);
      const newest = await alice.conversations.items.list(id, { limit: 2 });
      expect(newest.data.map(({ id }) => id)).toEqual([added.last_id, added.data[18]?.id]);
      expect(newest.has_more).toBe(true);
      const itemId = added.data[5]?.id ?? "";
      expect(await alice.conversations.items.retrieve(itemId, { conversation_id: id })).toEqual(added.data[5]);
      const after = await alice.conversations.items.delete(itemId, { conversation_id: id });
      expect(after).toMatchObject({ id, object: "conversation" });
      expect(await textsOf(id)).toEqual(["first", ...names.filter((name) => name !== "text 5")]);
      for (const again of [
        () => alice.conversations.items.retrieve(itemId, { conversation_id: id }),
        () => alice.conversations.items.delete(itemId, { conversation_id: id }),
      ])
        await expect<Promise<unknown>>(again()).rejects.toMatchObject({
          status: 404,
          message: `404 Item with id '${itemId}' not found.`,
        });
    });

    test("a response continues it, and its input and output are added", async () => {
      const { id } = await alice.conversations.create({ items: [user("one")] });
      const first = await alice.responses.create({ model, input: "two", conversation: id });
      expect(first).toMatchObject({ conversation: { id }, output_text: "one|two", previous_response_id: null });
      const names = Object.keys(first);
      expect(names.indexOf("conversation")).toBe(names.indexOf("completed_at") + 1);
      const stream = alice.responses.stream({ model, input: [user("three")], conversation: { id } });
      expect((await stream.finalResponse()).output_text).toBe("one|two|one|two|three");
      expect(await textsOf(id)).toEqual(["one", "two", "one|two", "three", "one|two|one|two|three"]);
      // A deleted item is not sent to the model again: what it said before and after is one message.
      const [, , , last] = (await alice.conversations.items.list(id, { order: "asc" })).data;
      await alice.conversations.items.delete(last?.id ?? "", { conversation_id: id });
      expect((await alice.responses.create({ model, input: "four", conversation: id })).output_text).toBe(
        "one|two|one|twoone|two|one|two|three|four",
      );
      // The response itself has the items before it, and is continued without the conversation.
      const items = await alice.responses.inputItems.list(first.id, { order: "asc" });
      expect(items.data).toHaveLength(2);
      const other = await alice.responses.create({ model, input: "five", previous_response_id: first.id });
      expect(other.output_text).toBe("one|two|one|two|five");
      expect(other).not.toHaveProperty("conversation");
    });

    test("the tokens of a request in it are counted with its items", async () => {
      const { id } = await alice.conversations.create({ items: [user("a long text ".repeat(100))] });
      const tokensOf = async (more: object): Promise<number> =>
        (await alice.responses.inputTokens.count({ model, input: "x", ...more })).input_tokens;
      expect((await tokensOf({ conversation: id })) - (await tokensOf({}))).toBeGreaterThan(100);
    });

    test("an id is not read beyond its segment of the path", async () => {
      const { id } = await alice.conversations.create({ items: [user("one")] });
      const [item] = (await alice.conversations.items.list(id)).data;
      const paths = [
        `${id}%2Fitems%2F${item?.id}`,
        `${id}%0A`,
        `${id}%2F/items/${item?.id}`,
        `${id}/items/${item?.id}%2F`,
      ];
      for (const path of paths) {
        const headers = { authorization: "Bearer alice" };
        const response = await fetch(`${server.url}/v1/conversations/${path}`, { method: "DELETE", headers });
        expect([path, response.status]).toEqual([path, 404]);
      }
      expect(await textsOf(id)).toEqual(["one"]);
    });

    test("without store, the items are added and the response is not kept; a response that fails adds nothing", async () => {
      const { id } = await alice.conversations.create();
      const response = await alice.responses.create({ model, input: "one", conversation: id, store: false });
      await expect(alice.responses.retrieve(response.id)).rejects.toMatchObject({ status: 404 });
      await expect(alice.responses.create({ model, input: "fail", conversation: id })).rejects.toThrow();
      expect(await textsOf(id)).toEqual(["one", "one"]);
    });

    test("in the background, they are added when it is complete", async () => {
      const { id } = await alice.conversations.create();
      const { id: responseId } = await alice.responses.create({
        model,
        input: "one",
        conversation: id,
        background: true,
      });
      await expect.poll(async () => (await alice.responses.retrieve(responseId)).status).toBe("completed");
      await expect.poll(() => textsOf(id)).toEqual(["one", "one"]);
    });

    test("concurrent responses and additions lose no items", async () => {
      const { id } = await alice.conversations.create();
      const names = Array.from({ length: 24 }, (_, at) => `concurrent ${at}`);
      await Promise.all(
        names.map((input, at) =>
          at % 2 === 0
            ? alice.responses.create({ model, input, conversation: id })
            : alice.conversations.items.create(id, { items: [user(input)] }),
        ),
      );
      const texts = await textsOf(id, { limit: 100 });
      expect(texts).toHaveLength(36);
      expect(texts).toEqual(expect.arrayContaining(names));
    });

    test("refusals are in OpenAI's words", async () => {
      const { id } = await alice.conversations.create();
      const post = async (path: string, body: object): Promise<unknown> => {
        const headers = {
          authorization: "Bearer alice",
          "content-type": "application/json",
          "x-truewire-wire": "exact",
        };
        const response = await fetch(`${server.url}/v1${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        const { error } = (await response.json()) as { error: { message: string; param: unknown; code: unknown } };
        return [response.status, error.message, error.param, error.code];
      };
      const { id: previous } = await alice.responses.create({ model, input: "x" });
      expect(await post("/responses", { model, input: "x", conversation: id, previous_response_id: previous })).toEqual(
        [
          400,
          "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
          null,
          "mutually_exclusive_parameters",
        ],
      );
      expect(await post("/responses", { model, input: "x", conversation: "thread_1" })).toEqual([
        400,
        "Invalid 'conversation': 'thread_1'. Expected an ID that begins with 'conv'.",
        "conversation",
        "invalid_value",
      ]);
      expect(await post("/responses", { model, input: "x", conversation: "conv_none" })).toEqual([
        404,
        "Conversation with id 'conv_none' not found.",
        null,
        null,
      ]);
      expect(await post("/responses", { model, input: "x", conversation: 7 })).toEqual([
        400,
        "Invalid type for 'conversation': expected one of a conversation ID or object, but got an integer instead.",
        "conversation",
        "invalid_type",
      ]);
      expect(await post("/conversations", { items: Array.from({ length: 21 }, () => user("x")) })).toEqual([
        400,
        "Invalid 'items': array too long. Expected an array with maximum length 20, but got an array with length 21 instead.",
        "items",
        "array_above_max_length",
      ]);
      const metadata = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`key${at}`, "x"]));
      expect(await post("/conversations", { metadata })).toMatchObject([
        400,
        expect.stringContaining("too many properties"),
        "metadata",
        "object_above_max_properties",
      ]);
      expect(await post("/conversations", { topic: "x" })).toEqual([
        400,
        "Unknown parameter: 'topic'.",
        "topic",
        "unknown_parameter",
      ]);
      expect(await post(`/conversations/${id}`, {})).toEqual([
        400,
        "Missing required parameter: 'metadata'.",
        "metadata",
        "missing_required_parameter",
      ]);
      expect(await post(`/conversations/${id}/items`, {})).toEqual([
        400,
        "Missing required parameter: 'items'.",
        "items",
        "missing_required_parameter",
      ]);
      expect(await post(`/conversations/${id}/items`, { items: [{ type: "message", role: "user" }] })).toMatchObject([
        400,
        "Missing required parameter: 'items[0].content'.",
        "items[0].content",
        "missing_required_parameter",
      ]);
      expect(await post(`/conversations/${id}/items`, { items: [{ type: "item_reference", id: "msg_none" }] })).toEqual(
        [404, "Item with id 'msg_none' not found.", null, null],
      );
      expect(await post(`/conversations/${id}/items?include[]=all`, { items: [user("x")] })).toMatchObject([
        400,
        expect.stringContaining("Invalid value: 'all'."),
        "include[0]",
        "invalid_value",
      ]);
      expect(await textsOf(id)).toEqual([]);
    });

    test("a folder or Redis still has it when the server starts again", async ({ skip }) => {
      if (!options.includes("--store")) {
        console.log("skipped: without --store, conversations end with the process");
        skip();
      }
      const { id } = await alice.conversations.create({ items: [user("before")] });
      await server.stop("SIGKILL");
      server = await startTruewire(options);
      [alice, bob] = [clientOf("alice"), clientOf("bob")];
      expect((await alice.responses.create({ model, input: "after", conversation: id })).output_text).toBe(
        "before|after",
      );
    });
  });
});
