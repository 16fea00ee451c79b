/** Servers for tests: one that answers as scripted, and one that receives webhooks. */

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that arrived. */
export interface Arrived {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** An answer: its connection is closed after the body, whether that is complete or not. */
export interface Scripted {
  status: number;
  body?: string;
  headers?: Record<string, string>;
  /** Closes the connection as if the server had died. */
  breaks?: boolean;
}

export interface Server {
  url: string;
  /** Those that arrived, in order. */
  arrived: Arrived[];
  /** The next one that was not returned before. */
  next(): Promise<Arrived>;
}

/** Runs a server for as long as `use` does. It gives the answers in order, and 204 after the last one. */
export async function withServer(answers: Scripted[], use: (server: Server) => Promise<void>): Promise<void> {
  const script = answers.values();
  const arrived: Arrived[] = [];
  let returned = 0;
  let wake = (): void => undefined;
  const http = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      arrived.push({ method, path, headers, body: Buffer.concat(pieces) });
      wake();
      const answer = script.next().value ?? { status: 204 };
      response.writeHead(answer.status, { connection: "close", ...answer.headers });
      if (answer.breaks === true) {
        response.write(answer.body ?? "", () => request.socket.destroy());
      } else {
        response.end(answer.body ?? "");
      }
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const next = async (): Promise<Arrived> => {
    for (;;) {
      const one = arrived[returned];
      if (one !== undefined) {
        returned += 1;
        return one;
      }
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  try {
    await use({ url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, arrived, next });
  } finally {
    http.closeAllConnections();
    http.close();
  }
}
