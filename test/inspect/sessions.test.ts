import { existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { RequestSummary } from "../../src/judge/inspect/inspected-request.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json } from "../support/transports.ts";
import { listed } from "./support.ts";

const folder = new URL("../../../shared/client-captures/", import.meta.url).pathname;
const hasCaptures = existsSync(folder);
if (!hasCaptures) console.log("skipped: no ../shared/client-captures to read");

interface CapturedCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

function calls(name: string): CapturedCall[] {
  const lines = readFileSync(`${folder}${name}.jsonl`, "utf8").trim().split("\n");
  return lines.map((line) => {
    const { request, body = request, url, headers } = JSON.parse(line) as Partial<CapturedCall> & { request?: object };
    return {
      url: url ?? "",
      headers: headers ?? {},
      body: (typeof body === "string" ? JSON.parse(body) : body) as object,
    };
  });
}

let server: TruewireServer;
beforeAll(async () => {
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine, aliases: ["*"] }] });
});
afterAll(() => server.close(0));

/** Sends the calls again, one after the other; returns their lines in the list. */
async function sent(calls: readonly CapturedCall[]): Promise<RequestSummary[]> {
  const ids: string[] = [];
  for (const { url, headers, body } of calls) {
    const init = json(body);
    // A long value was shortened, with a character that no header may have.
    const ours = Object.entries(headers).filter(
      ([name, value]) => /^(x-|user-agent|session|thread|anthropic)/i.test(name) && !value.includes("…"),
    );
    const path = new URL(url, server.url).pathname;
    const response = await fetch(server.url + path, {
      ...init,
      headers: { ...Object.fromEntries(ours), ...init.headers },
    });
    expect(response.status, await response.text()).toBe(200);
    ids.push(response.headers.get("x-request-id") ?? "");
  }
  const { requests } = await listed(server.url);
  return ids.map((id) => requests.find((request) => request.id === id) ?? expect.fail(`${id} is not listed`));
}

/** What the list shows of each, with the ids of conversations as numbers. */
function shown(requests: readonly RequestSummary[]): unknown[] {
  const conversations = [...new Set(requests.map(({ conversation }) => conversation))];
  return requests.map(({ conversation, turn, purpose }) => [conversations.indexOf(conversation), turn, purpose]);
}

describe.skipIf(!hasCaptures)("recorded sessions are one thread each", () => {
  // All requests of a session were turns of one conversation: the title and the sub-agents, too.
  test("Claude Code 2.1.233: a sub-agent and the title are told apart from the main conversation", async () => {
    const recorded = calls("claude-code-2.1.233-recorded");
    // In the order in which they were sent: the file has another one, and a request of another session.
    const inOrder = [6, 5, 0, 3, 1, 4].map((at) => recorded[at] ?? expect.fail(`call ${at} is not there`));
    const requests = await sent(inOrder);
    expect(new Set(requests.map(({ thread }) => thread))).toEqual(new Set([requests[0]?.id]));
    expect(shown(requests)).toEqual([
      [0, 1, undefined],
      [1, 1, "title"],
      [2, 1, "sub-agent"],
      [2, 2, "sub-agent"],
      [0, 2, undefined],
      [0, 3, undefined],
    ]);
    expect(requests[0]).toMatchObject({
      client: "claude-cli/2.1.233",
      snippet: expect.stringMatching(/^Spawn a subagent to get the weather/),
    });
    expect(requests[5]).toMatchObject({ snippet_of: "tool", topic: requests[0]?.snippet });
  });

  test("Claude Code 2.1.330: answers that were cut and continued stay in the conversation", async () => {
    for (const [name, count] of [
      ["claude-code-2.1.330", 2],
      ["claude-code-2.1.330-max-tokens", 5],
    ] as const) {
      const requests = await sent(calls(name));
      expect(shown(requests)).toEqual(Array.from({ length: count }, (_, at) => [0, at + 1, undefined]));
    }
  });

  test("Codex 0.169, and a sub-agent of it", async () => {
    const recorded = calls("codex-0.169.0");
    const first = recorded[0] ?? expect.fail("no call");
    const child = { "thread-id": "another", "x-openai-subagent": "collab_spawn" };
    const other = { ...first, headers: { ...first.headers, ...child } };
    const requests = await sent([...recorded, other]);
    expect(new Set(requests.map(({ thread }) => thread)).size).toBe(1);
    expect(shown(requests)).toEqual([
      [0, 1, undefined],
      [0, 2, undefined],
      [1, 1, "sub-agent"],
    ]);
    expect(requests[0]).toMatchObject({ client: "codex_exec/0.169.0", snippet: "run echo hi" });
  });
});

const session = { "x-claude-code-session-id": "count" };
const user = (content: string): object => ({ role: "user", content });

test("counts of tokens and refused requests of a session are in its thread, and are no turns", async () => {
  const body = { model: "m", messages: [user("Hello")] };
  const send = async (path: string, body: object): Promise<number> => {
    const init = json(body);
    const response = await fetch(`${server.url}/v1/${path}`, { ...init, headers: { ...init.headers, ...session } });
    await response.text();
    return response.status;
  };
  expect(await send("messages", { ...body, max_tokens: 5 })).toBe(200);
  expect(await send("messages", { ...body, max_tokens: "five" })).toBe(400);
  await send("messages/count_tokens", body);
  expect(await send("messages", { ...body, max_tokens: 5 })).toBe(200);
  const requests = (await listed(server.url)).requests.slice(-4);
  expect(new Set(requests.map(({ thread }) => thread)).size).toBe(1);
  expect(requests.map(({ turn }) => turn)).toEqual([1, undefined, undefined, 2]);
});

test("another system prompt in a session is a conversation of its own, and continues there", async () => {
  const call = (system: string, ...messages: object[]): CapturedCall => ({
    url: "/v1/chat/completions",
    headers: { "session-id": "prompts" },
    body: { model: "m", messages: [{ role: "system", content: system }, ...messages] },
  });
  const hi = user("Hi");
  const requests = await sent([
    call("You plan.", hi),
    call("You are a title generator. You write titles.", hi),
    call("You search.", user("Search!")),
    // Its messages continue those of the first one: the date in its system prompt has changed.
    call("You plan. It is Monday.", hi, { role: "assistant", content: "Yes?" }, user("Go on.")),
    call("You search.", user("Search for something else!")),
  ]);
  expect(shown(requests)).toEqual([
    [0, 1, undefined],
    [1, 1, "title"],
    [2, 1, undefined],
    [0, 2, undefined],
    [2, 2, undefined],
  ]);
});

test("the list names the engine and its own name of the model, the same for all aliases", async () => {
  const call = (model: string): CapturedCall => ({
    url: "/v1/chat/completions",
    headers: {},
    body: { model, messages: [user("Hi")] },
  });
  const requests = await sent([call("scripted"), call("gpt-5.4")]);
  expect(requests.map(({ model }) => model)).toEqual(["scripted", "gpt-5.4"]);
  expect(requests.map(({ engine_model: model }) => model)).toEqual(["scripted", "scripted"]);
  const [first] = requests;
  const { requests: found } = await listed(server.url, `?engine=${first?.engine}&engine_model=scripted&model=gpt-5.4`);
  expect(found.map(({ id }) => id)).toContain(requests[1]?.id);
});

// A conversation whose client names no session was cut in two when its system prompt had changed: only whole beginnings were compared.
test("a changed system prompt does not cut a conversation without a session; another first question is another conversation", async () => {
  const call = (system: string, ...messages: object[]): CapturedCall => ({
    url: "/v1/chat/completions",
    headers: {},
    body: { model: "m", messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...messages] },
  });
  const said = { role: "assistant", content: "Hi" };
  const first = user("Shall the thread be cut?");
  const requests = await sent([
    call("Be brief.", first),
    call("Be kind. Today is Sunday.", first, said, user("And now?")),
    call("", first, said, user("And now?"), said, user("Without any?")),
    // The same first question under another system prompt, which continues its own.
    call("Be rude.", first),
    call("Be rude.", first, said, user("Why?")),
    call("Be brief.", user("Something else"), said, user("And now?")),
  ]);
  expect(shown(requests)).toEqual([
    [0, 1, undefined],
    [0, 2, undefined],
    [0, 3, undefined],
    [1, 1, undefined],
    [1, 2, undefined],
    [2, 1, undefined],
  ]);
  expect(new Set(requests.map(({ thread }) => thread)).size).toBe(3);
});
