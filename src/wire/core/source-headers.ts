/** The header, of an answer to a client, with the id that the source gave to the request. */
export const upstreamRequestId = "x-truewire-upstream-request-id";
