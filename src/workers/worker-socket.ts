import { Socket } from "node:net";

/**
 * Beside stdin, stdout, stderr and the channel of node:cluster, a worker has a socket to its primary process. It has no name and no file,
 * so nobody else can connect to it, and it is gone with the two processes.
 */
export const peerDescriptor = 4;

/** In a worker: the socket to its primary process. */
export function openWorkerSocket(): Socket {
  return new Socket({ fd: peerDescriptor, readable: true, writable: true });
}
