// The mock's sessions of browsers, as those of the gateway.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { MockGateway } from '../mock/index.ts';

let gateway: MockGateway;
beforeEach(async () => {
  gateway = new MockGateway();
  gateway.permit('mara', { username: 'mara.lindqvist' });
  gateway.cluster.put('pods', { metadata: { name: 'p', namespace: 'a' } });
  await gateway.start();
});
afterEach(() => gateway.stop());

const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Response> => fetch(gateway.url + path, { method, headers });
const begin = async (token = 'mara'): Promise<string> => {
  const response = await ask('/auth/session', { authorization: `Bearer ${token}` }, 'POST');
  expect(response.status).toBe(200);
  return response.headers.get('set-cookie') ?? '';
};
const valueOf = (cookie: string): string => cookie.split(';')[0] ?? '';
const told = async (cookie: string): Promise<unknown> => (await ask('/auth/session', { cookie })).json();

test('a token becomes a cookie that no script reads, in which the browser is known until it signs out', async () => {
  const cookie = await begin();
  expect(cookie).toMatch(/^__Host-kubecast=[^;]+; Path=\/; .*HttpOnly; Secure; SameSite=Strict$/);
  const value = valueOf(cookie);
  expect(await told(value)).toEqual({ login: false, username: 'mara.lindqvist', expiresAt: expect.stringMatching(/Z$/) as string, renewable: false });
  expect((await ask('/api/v1/pods', { cookie: value })).status).toBe(200);
  const stream = await ask('/stream?w=/api/v1/pods', { cookie: value, accept: 'text/event-stream' });
  expect(stream.status).toBe(200);
  await stream.body?.cancel();
  const out = await ask('/auth/logout', { cookie: value }, 'POST');
  expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringMatching(/^__Host-kubecast=; .*Max-Age=0/)]);
  expect([await told(value), (await ask('/api/v1/pods', { cookie: value })).status]).toEqual([{ login: false, renewable: false }, 401]);
});

test('a session ends with its token, and with what its user may do', async () => {
  const until = Date.now() + 60_000;
  gateway.permit('short', { username: 'ann', expiresAt: until });
  const value = valueOf(await begin('short'));
  expect(await told(value)).toMatchObject({ username: 'ann', expiresAt: new Date(until).toISOString() });
  gateway.permit('short', undefined);
  expect([await told(value), (await ask('/api/v1/pods', { cookie: value })).status]).toEqual([{ login: false, renewable: false }, 401]);
});

test('without a good token there is no session, and pages of other origins have no use of one', async () => {
  expect((await ask('/auth/session', {}, 'POST')).status).toBe(401);
  expect((await ask('/auth/session', { authorization: 'Bearer wrong' }, 'POST')).status).toBe(401);
  const value = valueOf(await begin());
  const foreign = { cookie: value, origin: 'https://elsewhere.example' };
  expect([(await ask('/auth/session', foreign)).status, (await ask('/api/v1/pods', foreign)).status, (await ask('/auth/logout', foreign, 'POST')).status]).toEqual([403, 403, 403]);
  gateway.origins = new Set(['https://elsewhere.example']);
  expect((await ask('/api/v1/pods', foreign)).status).toBe(200);
  expect((await ask('/api/v1/pods', { cookie: `${value}; __Host-kubecast=other` })).status).toBe(401);
});
