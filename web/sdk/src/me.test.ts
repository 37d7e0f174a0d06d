import { expect, test, vi } from 'vitest';
import { mayWatch, watchable, type Watchable } from './me.ts';

const answer = (watch: unknown, name = 'default'): unknown => ({
  username: 'mara',
  clusters: [
    { name: 'other', default: false, watch: [{ group: '', resource: 'pods', all: true, namespaces: [] }] },
    { name, default: true, watch },
  ],
});

function gateway(body: unknown, status = 200) {
  return vi.fn<typeof fetch>(() => Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })));
}

test('the token goes into the header, and the kinds into the query', async () => {
  const fetch = gateway(answer([]));
  await watchable({ kinds: ['pods', 'jobs.batch'], gateway: 'https://gw', token: () => Promise.resolve('t'), fetch });
  const [url, init] = fetch.mock.calls[0] ?? [];
  expect(url).toBe('https://gw/auth/me?kinds=pods%2Cjobs.batch');
  expect(new Headers(init?.headers).get('Authorization')).toBe('Bearer t');
  expect(init?.credentials).toBe('omit');
  await watchable({ kinds: ['pods'], fetch });
  expect(fetch.mock.calls[1]?.[1]).toMatchObject({ credentials: 'include' });
});

test('kinds come in the order in which they were asked about, of the default cluster or the one that is named', async () => {
  const fetch = gateway(
    answer([
      { group: 'batch', resource: 'jobs', all: false, namespaces: ['a'], names: { b: ['train'] } },
      { group: '', resource: 'pods', all: false, namespaces: [] },
    ]),
  );
  const [pods, jobs] = await watchable({ kinds: ['pods', 'jobs.batch'], fetch });
  expect(pods).toMatchObject({ resource: 'pods', all: false, namespaces: [], unknown: false });
  expect(jobs).toMatchObject({ group: 'batch', namespaces: ['a'], names: { b: ['train'] } });
  const [others] = await watchable({ kinds: ['pods'], cluster: 'other', fetch });
  expect(others?.all).toBe(true);
});

test('what is not said, or makes no sense, is not taken for a permission', async () => {
  for (const body of [answer(undefined), answer('all'), answer([{ group: '', resource: 'pods', all: 'yes', namespaces: 'a', names: [1] }]), {}, []]) {
    const [pods] = await watchable({ kinds: ['pods'], fetch: gateway(body) });
    expect(pods && mayWatch(pods, '')).toBe(false);
  }
  await expect(watchable({ kinds: ['pods'], fetch: gateway('', 503) })).rejects.toThrow('503');
  await expect(watchable({ kinds: ['pods'], fetch: gateway('<html>') })).rejects.toThrow();
});

test('a name that may be seen counts in its namespace, and one of all namespaces in each', () => {
  const kind: Watchable = { group: '', resource: 'pods', all: false, namespaces: ['a'], names: { b: ['x'] }, unknown: false };
  expect(['', 'a', 'b', 'c'].map((namespace) => mayWatch(kind, namespace))).toEqual([true, true, true, false]);
  expect(mayWatch({ ...kind, namespaces: [], names: { '': ['x'] } }, 'c')).toBe(true);
  expect(mayWatch({ ...kind, namespaces: [], names: {} }, '')).toBe(false);
  expect(mayWatch({ ...kind, all: true }, 'c')).toBe(true);
});
