// The built portal behind the mock gateway, served as strictly as the real one serves it.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MockGateway, type Fallback } from '../../mock/gateway.ts';
import { freeAddress } from './processes.ts';

const dist = fileURLToPath(new URL('../../portal/dist', import.meta.url));
// The real gateway's (internal/http/headers.go, whose test compares the two).
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

export const isBuilt = existsSync(join(dist, 'index.html'));

const files: Fallback = (request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://portal');
  const path = join(dist, normalize(pathname === '/' ? '/index.html' : pathname));
  if (!path.startsWith(dist) || !existsSync(path) || !statSync(path).isFile()) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    'Content-Type': types[extname(path)] ?? 'application/octet-stream',
    'Content-Security-Policy': policy,
  });
  createReadStream(path).pipe(response);
};

export async function startMock(): Promise<MockGateway> {
  const gateway = new MockGateway();
  gateway.fallback = files;
  gateway.retry = 200;
  await gateway.start(Number((await freeAddress()).split(':')[1])); // it is stopped and started there
  return gateway;
}

/** Looks like a token, so that the portal can tell whose it is. The mock knows tokens by heart. */
export function mockToken(user: string, expiresAt = Date.now() + 3_600_000): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ sub: user, exp: Math.floor(expiresAt / 1_000) })}.signature`;
}
