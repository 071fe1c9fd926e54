import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import type { Handler } from "../../src/server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

// Fastify reads a JSON body before its handlers run and keeps it in a request of its own, so a handler that got Node's request waited for an
// end that had been emitted, without an answer. No test ran a real framework: `createHandler` was tested under node:http alone.
//
// The recipes are those of docs/serving.md, which test/docs runs, too.

/* oxlint-disable typescript/no-explicit-any */
/** Frameworks are imported by name: Express and Koa have no types of their own. */
const load = async (name: string): Promise<any> => (await import(name)) as unknown;

interface Framework {
  readonly name: string;
  /** Serves the handler as docs/serving.md says. */
  open(handler: Handler): Promise<RequestListener>;
}

const frameworks: readonly Framework[] = [
  {
    name: "Express",
    async open(handler) {
      const { default: express } = await load("express");
      return express().use("/ai", handler);
    },
  },
  {
    name: "Express after express.json()",
    async open(handler) {
      const { default: express } = await load("express");
      return express().use(express.json()).use("/ai", handler);
    },
  },
  ...["raw", "text"].map((parser) => ({
    name: `Express after express.${parser}()`,
    async open(handler: Handler) {
      const { default: express } = await load("express");
      return express()
        .use(express[parser]({ type: "*/*" }))
        .use("/ai", handler);
    },
  })),
  {
    name: "Fastify",
    async open(handler) {
      const { default: fastify } = await load("fastify");
      const app = fastify();
      app.register(async (api: any) => {
        api.removeAllContentTypeParsers();
        api.addContentTypeParser("*", (_request: unknown, _body: unknown, done: (error: null) => void) => done(null));
        api.all("/ai/*", (request: any, reply: any) => {
          reply.hijack();
          handler(request.raw, reply.raw);
        });
      });
      await app.ready();
      return (request, response) => app.routing(request, response);
    },
  },
  {
    name: "Fastify, which passes its body on",
    async open(handler) {
      const { default: fastify } = await load("fastify");
      const app = fastify();
      app.all("/ai/*", (request: any, reply: any) => {
        reply.hijack();
        handler(Object.assign(request.raw, { body: request.body }), reply.raw);
      });
      await app.ready();
      return (request, response) => app.routing(request, response);
    },
  },
  {
    name: "Koa",
    async open(handler) {
      const { default: Koa } = await load("koa");
      const app = new Koa();
      app.use((context: any) => {
        context.respond = false;
        handler(context.req, context.res);
      });
      return app.callback();
    },
  },
  {
    name: "Hono",
    async open(handler) {
      const [{ Hono }, { getRequestListener }] = [await load("hono"), await load("@hono/node-server")];
      const app = new Hono();
      app.all("/ai/*", (context: any) => handler.fetch(context.req.raw));
      return getRequestListener(app.fetch);
    },
  },
  {
    name: "h3",
    async open(handler) {
      const [{ H3 }, { toNodeHandler }] = [await load("h3"), await load("h3/node")];
      const app = new H3();
      app.all("/ai/**", (event: any) => handler.fetch(event.req));
      return toNodeHandler(app);
    },
  },
];

async function listening(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  closeAfterTest(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Seen {
  aborted: boolean;
}

function handlerFor(basePath: string, seen: Seen = { aborted: false }): Handler {
  const handler = createHandler(
    {
      models: [
        {
          kind: "program",
          name: "echo",
          async *program({ messages, signal }) {
            const text = String(messages.at(-1)?.content);
            yield `${text.length} `;
            if (text === "wait") {
              await new Promise<void>((left) => signal.addEventListener("abort", () => left(), { once: true }));
              seen.aborted = true;
            }
            yield text.slice(0, 20);
          },
        },
      ],
    },
    { basePath, log: false },
  );
  closeAfterTest(() => handler.close(0));
  return handler;
}

function chat(content: string, stream = false): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", stream, messages: [{ role: "user", content }] }),
  };
}

const json = async (answer: Response): Promise<any> => answer.json();

const path = "/ai/v1/chat/completions";

test.each(frameworks)(
  "under $name, requests are answered, whole and streamed, and errors in the API's form",
  async (framework) => {
    // Express removes the path at which a handler is used.
    const handler = handlerFor(framework.name.startsWith("Express") ? "" : "/ai");
    const url = await listening(await framework.open(handler));
    const whole = await fetch(url + path, chat("Hello!"));
    expect(whole.status).toBe(200);
    expect((await json(whole)).choices[0].message.content).toBe("6 Hello!");
    const streamed = await (await fetch(url + path, chat("Hello!", true))).text();
    expect(streamed).toMatch(/"content":"6 "[^]*"content":"Hello!"[^]*data: \[DONE\]\n\n$/);
    const models = await json(await fetch(`${url}/ai/v1/models`));
    expect(models.data[0].id).toBe("echo");
    const unknown = await fetch(`${url}/ai/v1/nowhere`, { method: "POST", body: "{}" });
    expect(unknown.status).toBe(404);
    expect((await json(unknown)).error.type).toBe("invalid_request_error");
  },
);

/** Of several megabytes, as prompts with images are: frameworks that read bodies limit them to a tenth of that. */
const long = "x".repeat(3_000_000);

test.each(frameworks.filter(({ name }) => !/after|passes/.test(name)))(
  "under $name, a request of megabytes is read by the handler, and a client that leaves ends the answer",
  async (framework) => {
    const seen: Seen = { aborted: false };
    const handler = handlerFor(framework.name === "Express" ? "" : "/ai", seen);
    const url = await listening(await framework.open(handler));
    const answer = await fetch(url + path, chat(long));
    expect((await json(answer)).choices?.[0].message.content).toBe(`3000000 ${"x".repeat(20)}`);
    const leaving = new AbortController();
    const streamed = await fetch(url + path, { ...chat("wait", true), signal: leaving.signal });
    await streamed.body?.getReader().read();
    leaving.abort();
    await expect.poll(() => seen.aborted).toBe(true);
  },
);

const consumed: readonly Framework[] = [
  {
    name: "Fastify, whose parser has read the body",
    async open(handler) {
      const { default: fastify } = await load("fastify");
      const app = fastify();
      app.all("/ai/*", (request: any, reply: any) => {
        reply.hijack();
        handler(request.raw, reply.raw);
      });
      await app.ready();
      return (request, response) => app.routing(request, response);
    },
  },
  {
    name: "Koa after a body parser",
    async open(handler) {
      const { default: Koa } = await load("koa");
      const app = new Koa();
      app.use(async (context: any) => {
        context.request.body = await new Response(context.req).json();
        context.respond = false;
        handler(context.req, context.res);
      });
      return app.callback();
    },
  },
  {
    name: "node:http, where half of the body is read",
    open: async (handler) => (request, response) => {
      request.once("data", () => {
        request.pause();
        handler(request, response);
      });
    },
  },
  {
    name: "Hono, where the body is read",
    async open(handler) {
      const [{ Hono }, { getRequestListener }] = [await load("hono"), await load("@hono/node-server")];
      const app = new Hono();
      app.all("/ai/*", async (context: any) => {
        await context.req.raw.text();
        return handler.fetch(context.req.raw);
      });
      return getRequestListener(app.fetch);
    },
  },
  {
    name: "h3, where the body is read",
    async open(handler) {
      const [{ H3 }, { toNodeHandler }] = [await load("h3"), await load("h3/node")];
      const app = new H3();
      app.all("/ai/**", async (event: any) => {
        await event.req.text();
        return handler.fetch(event.req);
      });
      return toNodeHandler(app);
    },
  },
];

test.each(consumed)("under $name, the answer is the reason, at once", async (framework) => {
  const url = await listening(await framework.open(handlerFor("/ai")));
  for (const [where, body] of [
    ["chat/completions", chat("Hello!")],
    ["messages", chat("Hello!")],
  ] as const) {
    const answer = await fetch(`${url}/ai/v1/${where}`, body);
    expect(answer.status).toBe(500);
    expect((await json(answer)).error.message).toMatch(/^The request body was read before it reached Truewire/);
  }
});

test("a request without a body that a framework has read is a request without a body", async () => {
  const [consumedFastify] = consumed;
  const url = await listening((await consumedFastify?.open(handlerFor("/ai"))) ?? (() => {}));
  const answer = await fetch(url + path, { method: "POST" });
  expect(answer.status).toBe(400);
  expect((await fetch(`${url}/ai/v1/models`)).status).toBe(200);
});
