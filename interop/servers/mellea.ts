import { writeFileSync } from "node:fs";
import { inPlace, pythonPackages, startServer } from "../place.ts";
import type { RealServer } from "./server.ts";

const packages = pythonPackages("mellea");

/** Sends the texts of the conversation to its upstream, with the tools and the schema of the request. */
const program = `
import os
from mellea.backends.model_options import ModelOption
from mellea.backends.openai import OpenAIBackend
from mellea.backends.tools import MelleaTool
from mellea.stdlib.components.chat import Message
from mellea.stdlib.context import ChatContext
from mellea.stdlib.session import MelleaSession

backend = OpenAIBackend(model_id=os.environ["UPSTREAM_MODEL"], base_url=os.environ["UPSTREAM_URL"], api_key="none")

async def serve(input, requirements=None, model_options=None, format=None, client_options=None):
    options = dict(model_options or {})
    tools = options.pop(ModelOption.TOOLS, None) or []
    named = [MelleaTool(name=t["function"]["name"], tool_call=lambda **a: "", as_json_tool=t) for t in tools]
    if named:
        options[ModelOption.TOOLS] = named
    text = input[-1].get_text_content() or ""
    context = ChatContext()
    for earlier in input[:-1]:
        context = context.add(Message(earlier.role, earlier.get_text_content() or ""))
    session = MelleaSession(backend, ctx=context)
    return await session.ainstruct(
        description=text, strategy=None, model_options=options, format=format, tool_calls=bool(named),
        await_result=not options.get(ModelOption.STREAM, False),
    )
`;

export const mellea: RealServer = {
  id: "mellea",
  name: "mellea m serve",
  from: "pip mellea[server]",
  over: "llama-server",
  listsNoModels: true,
  apis: ["chat"],
  version: () => packages.version("mellea"),
  install: () => packages.install("mellea[server]==0.8.0"),
  async start(port, upstream) {
    if (!upstream) throw new Error("The program of m serve asks another server.");
    const url = `http://127.0.0.1:${port}`;
    const file = inPlace("mellea", "program.py");
    writeFileSync(file, program);
    const env = {
      UPSTREAM_MODEL: upstream.model,
      UPSTREAM_URL: `${upstream.url}/v1`,
      OTEL_SDK_DISABLED: "true",
    };
    const args = ["serve", file, "--host", "127.0.0.1", "--port", String(port)];
    const ready = `${url}/health`;
    const running = await startServer(packages.program("m"), args, { env, ready, log: "mellea.log" });
    return { url, model: "m", contextSize: upstream.contextSize, stop: running.stop };
  },
};
