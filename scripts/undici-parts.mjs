// What the command and its workers use of undici, in place of undici's index, which also loads its `fetch`, WebSocket, caches and mocks, and
// with them Node's own: a sixth of a start.
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import api from "undici/lib/api/index.js";

export { default as Agent } from "undici/lib/dispatcher/agent.js";
export { default as Client } from "undici/lib/dispatcher/client.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
export { default as buildConnector } from "undici/lib/core/connect.js";

// As the index does: the methods `request`, `stream`, `upgrade` and others.
Object.assign(Dispatcher.prototype, api);

/** undici's function, for commands that ask little: the index is loaded with the first call. */
export async function request(url, options) {
  const { default: undici } = await import("undici/index.js");
  return undici.request(url, options);
}
