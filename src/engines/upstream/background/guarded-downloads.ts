import { lookup } from "node:dns";
import { BlockList, isIPv6 } from "node:net";
import type { LookupFunction } from "node:net";
import { Agent, request } from "undici";
import type { Dispatcher } from "undici";

/** Addresses that are not the public internet. Source: IANA's registries of special-purpose addresses, and multicast. */
const privateNetworks: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];
/** Only 2000::/3 is given out as public; of it, these lead elsewhere: Teredo and documentation, 6to4, documentation. */
const publicNetwork = ["2000::", 3] as const;
const otherNetworks: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/** A download that failed; the message is the reason, as the end of a sentence. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  readonly code: "refused" | "too-large" | "timeout" | "failed";
  /** The HTTP status of the answer, if that is the reason. */
  readonly status: number | undefined;

  constructor(code: DownloadError["code"], message: string, options: ErrorOptions & { readonly status?: number } = {}) {
    super(message, options);
    this.code = code;
    this.status = options.status;
  }
}

/** Whether downloads may lead to private addresses: to all, or to those of some hosts, which are names or addresses. */
export type PrivateAddresses = boolean | ((host: string) => boolean);

/** Connections for downloads that strangers ask for: unless allowed, none leads to a private address. */
export interface Downloads {
  get(url: URL, signal: AbortSignal): Promise<Dispatcher.ResponseData>;
  /** Of an address, not of a name: names are judged when they are looked up. */
  readonly mayConnect: (address: string) => boolean;
  close(): Promise<void>;
}

export function openDownloads(options: {
  readonly timeoutMs: number;
  readonly allowPrivateAddresses: PrivateAddresses;
  /** The header. */
  readonly accept: string;
}): Downloads {
  const { timeoutMs, allowPrivateAddresses: allowed, accept } = options;
  const isPublic = publicAddresses();
  const mayConnect = (address: string, host = address): boolean =>
    allowed === true || isPublic(address) || (allowed !== false && allowed(host));
  const agent = new Agent({ connect: { timeout: timeoutMs, lookup: guardedLookup(mayConnect) } });
  const headers = { accept, "accept-encoding": "identity" };
  return {
    get: (url, signal) => request(url, { dispatcher: agent, signal, headers }),
    mayConnect,
    close: () => agent.destroy(),
  };
}

function publicAddresses(): (address: string) => boolean {
  const blocked = new BlockList();
  for (const [network, bits] of privateNetworks) blocked.addSubnet(network, bits, "ipv4");
  for (const [network, bits] of otherNetworks) blocked.addSubnet(network, bits, "ipv6");
  const given = new BlockList();
  given.addSubnet(...publicNetwork, "ipv6");
  return (address) => {
    if (!isIPv6(address)) return !blocked.check(address, "ipv4");
    return given.check(address, "ipv6") && !blocked.check(address, "ipv6");
  };
}

/** Looks names up as Node does, and fails where any address is refused: between a check and the connection nothing can change. */
function guardedLookup(mayConnect: (address: string, host: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      const hidden = addresses.find(({ address }) => !mayConnect(address, hostname));
      const [first] = addresses;
      if (hidden || !first) return callback(new DownloadError("refused", `${hostname} is not a public address`), []);
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
