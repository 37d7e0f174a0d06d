// Pages of other origins, as the wire contract has them: which may call, and what they may send and read.

import type { MockRequest, MockResponse } from './memory.ts';

/** An answer that also says what a page of another origin may do with it. @param origins those that may call; undefined: each */
export function forOrigins(origins: ReadonlySet<string> | undefined, methods: string, { method, headers }: MockRequest, response: MockResponse): MockResponse {
  const origin = headers.origin;
  if (typeof origin !== 'string' || (origins && !origins.has(origin))) return response;
  const preflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  const more = {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': origin,
    ...(preflight
      ? { 'Access-Control-Allow-Methods': methods, 'Access-Control-Allow-Headers': 'Authorization, Content-Type, If-None-Match, Last-Event-ID', 'Access-Control-Max-Age': '7200' }
      : { 'Access-Control-Expose-Headers': 'ETag, Retry-After, WWW-Authenticate, X-Request-Id' }),
  };
  const told: MockResponse = {
    get socket() {
      return response.socket;
    },
    writeHead: (status, own) => {
      response.writeHead(status, { ...own, ...more });
      return told;
    },
    write: (text, written) => response.write(text, written),
    end: (text) => response.end(text),
    on: (event, listener) => response.on(event, listener),
  };
  return told;
}
