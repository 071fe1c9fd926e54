import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { ask, post, startGateway } from "./gateway.ts";
import { bodyOf, done, event, finish, role, say, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { strictMessage } from "./strict-client.ts";
import { until } from "../support/scripted-engine.ts";

const running: (ScriptedServer | TruewireServer)[] = [];

afterEach(async () => {
  for (const server of running.splice(0).reverse()) await server.close(0);
});

async function upstream(...args: Parameters<typeof startScripted>): Promise<ScriptedServer> {
  const server = await startScripted(...args);
  running.push(server);
  return server;
}

async function gateway(...args: Parameters<typeof startGateway>): Promise<TruewireServer> {
  const server = await startGateway(...args);
  running.push(server);
  return server;
}

const stream = { stream: true };
const hello = role + event({ content: "Hello" });

describe("an upstream that dies", () => {
  test("before its headers: 502, streamed or not", async () => {
    const source = await upstream((response) => response.destroy());
    const truewire = await gateway(source.url, { retries: 0 });
    for (const members of [{}, stream]) {
      const { status, text } = await ask(truewire, members);
      expect(status).toBe(502);
      expect(JSON.parse(text)).toMatchObject({ error: { type: "server_error", param: null, code: null } });
    }
  });

  test("after its headers: still 502, since nothing was sent", async () => {
    const source = await upstream((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      setTimeout(() => response.destroy(), 30);
    });
    const truewire = await gateway(source.url, { retries: 0 });
    expect((await ask(truewire, stream)).status).toBe(502);
  });

  const cutAt: [string, string | Uint8Array][] = [
    ["in the middle of an event", `${hello}data: {"id":"chat`],
    ["in the middle of a character", Buffer.concat([Buffer.from(`${hello}data: {"x":"`), Buffer.from([0xf0, 0x9f])])],
    ["between two events", hello],
  ];
  test.each(cutAt)("%s: the text, an error, [DONE]", async (_, bytes) => {
    const source = await upstream((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(bytes);
      setTimeout(() => response.destroy(), 30);
    });
    const truewire = await gateway(source.url);
    const { status, text } = await ask(truewire, stream);
    expect(status).toBe(200);
    const message = strictMessage(text);
    expect(message.text).toBe("Hello");
    expect(message.error).toMatch(/cut off/);
    // What was begun is never asked for again.
    expect(source.requests).toHaveLength(1);
  });

  test("after the finish reason: a clean end", async () => {
    const source = await upstream((response) => {
      response.write(hello + finish);
      setTimeout(() => response.destroy(), 30);
    });
    const { text } = await ask(await gateway(source.url), stream);
    expect(strictMessage(text)).toMatchObject({ text: "Hello", finish: "stop", error: null });
  });

  test("in the middle of a JSON answer: 502", async () => {
    const source = await upstream((response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write(bodyOf("Hello").slice(0, 50));
      setTimeout(() => response.destroy(), 30);
    });
    expect((await ask(await gateway(source.url, { retries: 0 }))).status).toBe(502);
  });

  test("nobody is there: 503", async () => {
    const source = await startScripted(() => {});
    await source.close();
    const truewire = await gateway(source.url, { retries: 0, models: { m: "m" } });
    expect((await ask(truewire, stream)).status).toBe(503);
  });
});

describe("an upstream that falls silent", () => {
  test("before its first event: 504", async () => {
    const source = await upstream((response) => response.writeHead(200).flushHeaders());
    const truewire = await gateway(source.url, { retries: 0, timeouts: { firstEvent: "300ms" } });
    expect((await ask(truewire, stream)).status).toBe(504);
    await until(() => source.open() === 0, "the upstream's connection is closed");
  });

  test("after some text: an error and [DONE]", async () => {
    const source = await upstream((response) => response.write(hello));
    const truewire = await gateway(source.url, { timeouts: { idle: "300ms" } });
    const message = strictMessage((await ask(truewire, stream)).text);
    expect(message).toMatchObject({ text: "Hello", finish: null });
    expect(message.error).toMatch(/sent nothing for 0.3 seconds/);
    await until(() => source.open() === 0, "the upstream's connection is closed");
  });

  test("but for pings while it reads a long prompt: they are life", async () => {
    const source = await upstream((response) => {
      response.writeHead(200).flushHeaders();
      const timer = setInterval(() => response.write(": ping\n\n"), 50);
      setTimeout(() => {
        clearInterval(timer);
        response.end(hello + finish + done);
      }, 1000);
    });
    const truewire = await gateway(source.url, { timeouts: { idle: "300ms" } });
    expect(strictMessage((await ask(truewire, stream)).text).text).toBe("Hello");
  });

  // They were life for ever: an upstream that sends nothing else kept its connection, and the client's.
  test.each([": ping\n\n", "\n", 'data: {"object":"chat.completion.chunk","choices":[]}\n\n'])(
    "but for %j after some text: an error and [DONE] after the time for the first event",
    async (noise) => {
      const source = await upstream((response) => {
        response.write(hello);
        const timer = setInterval(() => response.write(noise), 20);
        response.on("close", () => clearInterval(timer));
      });
      const truewire = await gateway(source.url, { timeouts: { firstEvent: "600ms", idle: "300ms" } });
      const message = strictMessage((await ask(truewire, stream)).text);
      expect(message).toMatchObject({ text: "Hello", finish: null });
      expect(message.error).toMatch(/sent no event for 0.6 seconds/);
      await until(() => source.open() === 0, "the upstream's connection is closed");
    },
  );

  test("but for pings after its finish reason: the stream is ended (Bifrost #6784)", async () => {
    const source = await upstream((response) => {
      response.write(hello + finish);
      const timer = setInterval(() => response.write(": ping\n\n"), 50);
      response.on("close", () => clearInterval(timer));
    });
    const { text } = await ask(await gateway(source.url), stream);
    expect(strictMessage(text)).toMatchObject({ text: "Hello", finish: "stop", error: null });
    await until(() => source.open() === 0, "the upstream's connection is closed");
  });

  // The two seconds after the finish reason were counted though text went on: the rest was lost, without a word.
  test("but for text that goes on for long after a finish reason: none of it is lost (LiteLLM #376)", async () => {
    const words = Array.from({ length: 16 }, (_, at) => `${at} `);
    const source = await upstream((response) => {
      const left = [...words];
      const timer = setInterval(() => {
        const word = left.shift();
        if (word !== undefined) response.write(event({ content: word }, "stop"));
        else response.end(done);
      }, 250);
      response.on("close", () => clearInterval(timer));
    });
    const { text } = await ask(await gateway(source.url), stream);
    expect(strictMessage(text)).toMatchObject({ text: words.join(""), finish: "stop", error: null });
  });
});

test("10 GB without a line end are an error after a few MB, not memory", async () => {
  let sent = 0;
  const source = await upstream((response) => {
    response.write(`${hello}data: `);
    const block = Buffer.alloc(1024 * 1024, "x");
    const more = (): void => {
      while (!response.destroyed && sent < 10_000) {
        sent++;
        if (!response.write(block)) {
          response.once("drain", more);
          return;
        }
      }
    };
    more();
  });
  const truewire = await gateway(source.url, { answerLimit: "4MiB" });
  const message = strictMessage((await ask(truewire, stream)).text);
  expect(message.text).toBe("Hello");
  expect(message.error).toMatch(/longer than/);
  await until(() => source.open() === 0, "the upstream's connection is closed");
  expect(sent).toBeLessThan(64);
});

describe("attempts before the first event", () => {
  test("429 with Retry-After, then 200: the client sees one answer", async () => {
    const source = await upstream((response, body, attempt) => {
      if (attempt === 1)
        response.writeHead(429, { "retry-after": "0" }).end('{"error":{"message":"slow down","type":"requests"}}');
      else say(response, body, "Hello");
    });
    const truewire = await gateway(source.url);
    expect(strictMessage((await ask(truewire, stream)).text).text).toBe("Hello");
    expect(source.requests).toHaveLength(2);
  });

  test.each([408, 500, 502, 503, 504])("%d, then 200", async (status) => {
    const source = await upstream((response, body, attempt) => {
      if (attempt === 1) response.writeHead(status).end("no");
      else say(response, body, "Hello");
    });
    expect((await ask(await gateway(source.url))).status).toBe(200);
  });

  test("a connection that breaks, then 200", async () => {
    const source = await upstream((response, body, attempt) => {
      if (attempt === 1) response.destroy();
      else say(response, body, "Hello");
    });
    expect((await ask(await gateway(source.url))).status).toBe(200);
  });

  test("an error inside a 200, before any text, then an answer", async () => {
    const source = await upstream((response, body, attempt) => {
      if (attempt === 1) response.end('data: {"error":{"message":"overloaded","type":"overloaded_error"}}\n\n');
      else say(response, body, "Hello");
    });
    expect(strictMessage((await ask(await gateway(source.url), stream)).text).text).toBe("Hello");
  });

  test("what the request is to blame for is not tried again, and its words are kept", async () => {
    const error = {
      message: "Too long.",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    };
    const source = await upstream((response) => response.writeHead(400).end(JSON.stringify({ error })));
    const { status, text } = await ask(await gateway(source.url), stream);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toEqual({ error });
    expect(source.requests).toHaveLength(1);
  });

  test("a 429 that asks for a long wait goes to the client, with its headers", async () => {
    const source = await upstream((response) => {
      const headers = { "retry-after": "120", "x-ratelimit-remaining-requests": "0", "x-internal": "secret" };
      Object.assign(headers, { "x-request-id": "req_theirs", "openai-organization": "org", "openai-project": "proj" });
      response
        .writeHead(429, headers)
        .end('{"error":{"message":"slow down","type":"tokens","code":"rate_limit_exceeded"}}');
    });
    const { status, headers } = await ask(await gateway(source.url), stream);
    expect(status).toBe(429);
    expect(headers.get("retry-after")).toBe("120");
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(headers.get("openai-organization")).toBe("org");
    expect(headers.get("openai-project")).toBe("proj");
    expect(headers.get("x-truewire-upstream-request-id")).toBe("req_theirs");
    expect(headers.get("x-request-id")).not.toBe("req_theirs");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-internal")).toBeNull();
    expect(source.requests).toHaveLength(1);
  });

  // The code alone says what it is: it was 502, which is sent again twice and then counted against the server.
  test.each([
    ["rate_limit_exceeded", 429, 1],
    ["insufficient_quota", 429, 1],
    ["invalid_prompt", 400, 1],
    ["server_is_overloaded", 503, 3],
  ])("an error in the stream with the code %s is %i after %i attempts", async (code, status, attempts) => {
    const source = await upstream((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify({ error: { code, message: "No." } })}\n\n`);
    });
    const answer = await ask(await gateway(source.url), stream);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { message: "No.", code } });
    expect(answer.headers.get("x-should-retry")).toBe(code === "insufficient_quota" ? "false" : null);
    expect(source.requests).toHaveLength(attempts);
  });

  test("a storm of failures is not multiplied: retries have a budget", async () => {
    const source = await upstream((response) => response.writeHead(500).end());
    const truewire = await gateway(source.url);
    for (let i = 0; i < 20; i++) await ask(truewire);
    expect(source.requests.length).toBeLessThanOrEqual(20 + 10 + 20 * 0.2 + 1);
    expect(source.requests.length).toBeGreaterThan(20);
  });

  test("another model stands in", async () => {
    const source = await upstream((response, body) => {
      if (body["model"] === "m") response.writeHead(503).end();
      else say(response, body, "from the other");
    });
    const truewire = await gateway(source.url, { retries: 1, fallbacks: { m: ["other"] } });
    expect(strictMessage((await ask(truewire, stream)).text).text).toBe("from the other");
    expect(source.requests.map(({ body }) => body["model"])).toEqual(["m", "m", "other"]);
  });
});

describe("several URLs", () => {
  test("one that is dead costs no request, and gets none after a while", async () => {
    const dead = await startScripted(() => {});
    await dead.close();
    const broken = await upstream((response) => response.writeHead(500).end());
    const good = await upstream((response, body) => say(response, body, "Hello"));
    const truewire = await gateway([dead.url, broken.url, good.url], { models: { m: "m" } });
    for (let i = 0; i < 30; i++) expect((await ask(truewire, i % 2 === 0 ? stream : {})).status).toBe(200);
    expect(good.requests).toHaveLength(30);
    expect(broken.requests.length).toBeLessThanOrEqual(4);
  });

  test("one that works again is used again", async () => {
    let works = false;
    const flaky = await upstream((response, body) => {
      if (works) say(response, body, "Hello");
      else response.destroy();
    });
    const good = await upstream((response, body) => say(response, body, "Hello"));
    const truewire = await gateway([flaky.url, good.url], { models: { m: "m" } });
    for (let i = 0; i < 12; i++) await ask(truewire);
    const before = flaky.requests.length;
    works = true;
    await until(async () => {
      await ask(truewire);
      return flaky.requests.length > before;
    }, "it is asked again");
  });

  test("a request goes to the one with the least to do", async () => {
    const held: (() => void)[] = [];
    const slow = await upstream((response, body) => held.push(() => say(response, body, "slow")));
    const quick = await upstream((response, body) => say(response, body, "quick"));
    const truewire = await gateway([slow.url, quick.url], { models: { m: "m" } });
    const first = ask(truewire);
    const second = ask(truewire);
    await until(() => slow.requests.length === 1, "the slow one has a request");
    for (let i = 0; i < 5; i++) await ask(truewire);
    expect(slow.requests).toHaveLength(1);
    for (const go of held) go();
    await Promise.all([first, second]);
  });
});

describe("a client that leaves", () => {
  const leave = async (
    truewire: TruewireServer,
    members: object,
    wait: (response: Response | null) => Promise<void>,
  ): Promise<void> => {
    const controller = new AbortController();
    const pending = post(truewire, { ...members }, controller.signal).catch(() => null);
    await wait(null);
    controller.abort();
    await pending;
  };

  test.each<[string, object, boolean]>([
    ["in the middle of a stream", stream, true],
    ["before the first byte", stream, false],
    ["without a stream", {}, false],
  ])("%s: the upstream is told at once", async (_, members, begins) => {
    const source = await upstream((response) => {
      if (begins) response.write(hello);
    });
    const truewire = await gateway(source.url);
    await leave(truewire, members, () =>
      until(() => source.requests.length === 1 && source.open() === 1, "it has begun"),
    );
    await until(() => source.open() === 0, "the upstream's request is gone");
  });

  test("1,000 of them, at random: no upstream request is left over", async () => {
    const source = await upstream((response, body) => {
      if (body["stream"] !== true) return;
      response.write(hello);
      const timer = setInterval(() => response.write(event({ content: " on" })), 20);
      response.on("close", () => clearInterval(timer));
    });
    const truewire = await gateway(source.url);
    const one = async (seed: number): Promise<void> => {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), (seed * 7919) % 120);
      try {
        const response = await post(truewire, seed % 4 === 0 ? {} : stream, controller.signal);
        await response.text();
      } catch {
        // It left.
      }
      clearTimeout(timer);
    };
    let next = 0;
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        while (next < 1000) await one(next++);
      }),
    );
    await until(() => source.open() === 0, "all upstream requests are gone");
    await until(
      async () => (await (await fetch(`${truewire.url}/health`)).text()).includes('"outstanding":0'),
      "the gateway has released them",
    );
  });
});
