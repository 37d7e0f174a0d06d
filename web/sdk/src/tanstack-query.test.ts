import { dehydrate, hydrate, QueryClient, QueryObserver, type DehydratedState } from '@tanstack/query-core';
import { afterEach, beforeEach, expect, expectTypeOf, test, vi } from 'vitest';
import { MockGateway } from '../../mock/gateway.ts';
import { logs } from './index.ts';
import { createKubecast, type Kubecast, type WatchSnapshot } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';
import type { Source } from './store.ts';
import { kubecastQuery, kubecastSourceQuery } from './tanstack-query.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const team = { namespace: 'team-a' };

let gateway: MockGateway;
let kc: Kubecast;
let client: QueryClient;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  gateway = new MockGateway();
  gateway.users.set('let-me-in', {});
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 1_000, random: () => 0 });
  client = new QueryClient({ defaultOptions: { queries: { gcTime: 60_000 } } });
});
afterEach(() => {
  client.clear();
  kc.close();
  gateway.cutAll();
  vi.useRealTimers();
});

const pass = (ms = 200): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const put = (name: string) => gateway.cluster.put('jobs', { metadata: { name, ...team } });
const names = (shown: WatchSnapshot<KubeObject> | undefined): string => `${shown?.reason ?? shown?.status} ${shown?.data.map(({ metadata }) => metadata.name).join()}`;

/** Somebody who observes the query; what they see. */
function observe(options = kubecastQuery(kc, jobs, team)) {
  const observer = new QueryObserver(client, options);
  const leave = observer.subscribe(() => undefined);
  return { leave, said: () => names(observer.getCurrentResult().data), result: () => observer.getCurrentResult() };
}

test('a query has what its watch has, each change included, and leaves the stream when nobody observes it', async () => {
  put('train');
  const { leave, said, result } = observe();
  expect(result().status).toBe('pending');
  await pass();
  expect(said()).toBe('live train');
  const [before] = result().data?.data ?? [];
  const second = observe();
  put('eval');
  await pass();
  expect([said(), second.said()]).toEqual(['live train,eval', 'live train,eval']);
  expect(result().data?.data[0]).toBe(before);
  gateway.away = true;
  gateway.cutAll();
  await pass();
  expect(said()).toBe('reconnecting train,eval');
  gateway.away = false;
  await pass(60_000);
  expect(said()).toBe('live train,eval');
  leave();
  await pass(5_000);
  expect(gateway.streams.size).toBe(1); // there is another one
  second.leave();
  await pass(5_000);
  expect(gateway.streams.size).toBe(0);
  expect(kc.inside.entries.size).toBe(0);
});

test('what stays in the cache is as of when it was left, and told again once it is observed', async () => {
  put('train');
  observe().leave(); // as React's StrictMode does
  const first = observe();
  await pass();
  expect(first.said()).toBe('live train');
  const left = Date.now();
  first.leave();
  await pass(10_000);
  const kept = client.getQueryData<WatchSnapshot<KubeObject>>(kubecastQuery(kc, jobs, team).queryKey);
  expect([names(kept), kept?.asOf]).toEqual(['catching-up train', left]);
  put('eval');
  const again = observe();
  expect(again.said()).toBe('catching-up train');
  await pass();
  expect(again.said()).toBe('live train,eval');
  again.leave();
  await pass(120_000); // the cache forgets it
  expect(client.getQueryCache().getAll()).toEqual([]);
  expect(gateway.streams.size).toBe(0);
});

test('who leaves before it is there leaves nothing behind', async () => {
  const { leave } = observe();
  await pass(0);
  leave();
  await pass(5_000);
  expect([gateway.streams.size, kc.inside.entries.size]).toEqual([0, 0]);
});

test('what is denied fails the query, takes its data away, and is back once it is allowed', async () => {
  put('train');
  const { said, result } = observe();
  await pass();
  expect(said()).toBe('live train');
  gateway.users.set('let-me-in', { namespaces: ['team-b'] });
  gateway.cutAll();
  await pass(10_000);
  expect(result()).toMatchObject({ status: 'error', data: undefined, error: { message: expect.stringContaining('team-a') as string } });
  gateway.users.set('let-me-in', {});
  kc.wake();
  await pass(10_000);
  expect([result().status, said()]).toEqual(['success', 'live train']);
});

test('what is denied at first fails it at once, and `refetch` asks again', async () => {
  put('train');
  gateway.users.set('let-me-in', { namespaces: ['team-b'] });
  const { said, result } = observe();
  await pass(10_000);
  expect(result()).toMatchObject({ status: 'error', failureCount: 1 });
  gateway.users.set('let-me-in', {});
  void result().refetch();
  await pass(10_000);
  expect([result().status, said()]).toEqual(['success', 'live train']);
});

test('what is prefetched is as of then, follows nothing, and becomes live in another page that is given it', async () => {
  put('train');
  const prefetched = client.query(kubecastQuery(kc, jobs, team));
  await pass();
  await prefetched;
  const then = Date.now();
  await pass(5_000);
  expect(gateway.streams.size).toBe(0);
  const state = JSON.parse(JSON.stringify(dehydrate(client))) as DehydratedState;
  client.clear();
  hydrate(client, state);
  put('eval');
  const { said, result } = observe();
  expect([said(), (result().data?.asOf ?? 0) <= then]).toEqual(['catching-up train', true]);
  await pass();
  expect(said()).toBe('live train,eval');
});

test("'skip' asks for nothing, and another client of another caller is another one's", async () => {
  const skipped = observe(kubecastQuery(kc, jobs, 'skip'));
  await pass();
  expect(skipped.result()).toMatchObject({ status: 'pending', fetchStatus: 'idle' });
  expect(gateway.requests).toEqual([]);
  put('train');
  const { result, leave } = observe();
  await pass();
  kc.close();
  await pass();
  expect(result()).toMatchObject({ status: 'error', data: undefined });
  leave();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 1_000 });
  const other = observe();
  await pass();
  expect(other.said()).toBe('live train');
});

test('who asks anew as somebody else is told what that one may see', async () => {
  put('train');
  const { result, said } = observe();
  await pass();
  gateway.users.set('other', { namespaces: ['team-b'] });
  const other = createKubecast({ token: () => 'other', fetch: gateway.fetch, linger: 1_000 });
  const second = new QueryObserver(client, kubecastQuery(other, jobs, team));
  second.subscribe(() => undefined);
  expect(said()).toBe('live train');
  void second.refetch();
  await pass(10_000);
  expect(result()).toMatchObject({ status: 'error', error: { message: expect.stringContaining('team-a') as string } });
  expect(gateway.streams.size).toBe(0);
  other.close();
});

test('what is cleared does not come back, for whoever signs in next', async () => {
  put('train');
  const { leave, said } = observe();
  await pass();
  expect(said()).toBe('live train');
  client.clear();
  kc.close();
  leave();
  await pass();
  expect(client.getQueryCache().getAll()).toEqual([]);
});

test('what is dehydrated while somebody observes it is not live to who is given it', async () => {
  put('train');
  observe();
  await pass();
  const state = JSON.parse(JSON.stringify(dehydrate(client))) as DehydratedState;
  client = new QueryClient();
  kc.close();
  gateway.away = true;
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 1_000 });
  hydrate(client, state);
  const { said } = observe();
  await pass(10_000);
  expect(said()).toBe('catching-up train');
});

test('what useSuspenseQuery has fetched is followed once it is observed', async () => {
  put('train');
  const query = kubecastQuery(kc, jobs, team);
  const options = { ...query, suspense: true, staleTime: (of: object) => Math.max(query.staleTime(of), 1_000) }; // as it does
  const observer = new QueryObserver(client, options);
  await Promise.all([observer.fetchOptimistic(client.defaultQueryOptions(options) as never), pass()]);
  const leave = observer.subscribe(() => undefined);
  put('eval');
  await pass();
  expect(names(observer.getCurrentResult().data)).toBe('live train,eval');
  leave();
});

test('a change is in the cache, whenever it comes', async () => {
  for (let late = 0; late < 30; late++) {
    const listeners = new Set<() => void>();
    let snapshot: object = { data: [], status: 'loading' };
    const say = (data: readonly string[]): void => {
      snapshot = { data, status: 'live' };
      for (const listener of listeners) listener();
    };
    const watch = {
      subscribe: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      getSnapshot: () => snapshot,
    };
    const told = { inside: { options: {} }, follow: () => watch } as unknown as Kubecast;
    const observer = new QueryObserver(client, kubecastSourceQuery(told, { path: `/${late}` } as Source<string>));
    const leave = observer.subscribe(() => undefined);
    await pass();
    say(['first']);
    for (let n = 0; n < late; n++) await Promise.resolve();
    say(['first', 'second']);
    await pass();
    expect(observer.getCurrentResult().data, `${late}`).toBe(snapshot);
    leave();
    await pass();
    expect(listeners.size).toBe(0);
  }
});

test('lines of logs are a query, too, and types are those of the watch', async () => {
  const job = put('train');
  const options = kubecastSourceQuery(kc, logs(jobs, { ...team, name: 'train' }));
  expectTypeOf(kubecastQuery(kc, jobs, { ...team, fields: ['metadata.name'] }).queryFn).returns.resolves.toHaveProperty('data');
  const observer = new QueryObserver(client, { ...options, select: ({ data }) => data.length });
  expectTypeOf(observer.getCurrentResult().data).toEqualTypeOf<number | undefined>();
  const leave = observer.subscribe(() => undefined);
  await pass();
  expect(observer.getCurrentResult()).toMatchObject({ status: 'success', data: 0 });
  expect(job.metadata.name).toBe('train');
  leave();
});
