// What a request brings with it, as JSON.

import type { MockRequest, MockResponse } from './memory.ts';
import { BadQuery } from './query.ts';
import { refuseAs } from './reply.ts';

/** Reads a body of JSON, and refuses what is none. */
export function bodyOf(request: MockRequest, response: MockResponse, read: (said: unknown) => void): void {
  let body = '';
  const utf8 = new TextDecoder();
  request.on('data', (part) => (body += utf8.decode(part, { stream: true })));
  request.on('end', () => {
    try {
      let said: unknown;
      try {
        said = JSON.parse(body);
      } catch {
        throw new BadQuery('the body is no JSON');
      }
      if (said === null || typeof said !== 'object') throw new BadQuery('the body is no object');
      read(said);
    } catch (error) {
      if (!(error instanceof BadQuery)) throw error;
      refuseAs(request, response, error);
    }
  });
}
