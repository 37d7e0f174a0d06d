// @vitest-environment happy-dom
import { act, createElement, StrictMode, Suspense, useState, useTransition, type ReactNode } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import '../../mock/setup.ts';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { MockGateway } from '../../mock/gateway.ts';
import { MockWorld } from '../../mock/world.ts';
import { dehydrate, hydrate, type Dehydrated } from './hydrate.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { KubecastProvider, useCount, useLivePage, useObject, useSuspenseAccess, useSuspenseFollow, useSuspenseHistory, useSuspenseMe, useSuspenseNotifications, useSuspenseObject, useSuspenseQueue, useSuspenseQueues, useSuspenseWatch, useWatch } from './react.ts';
import { page } from './page.ts';
import { ready } from './ready.ts';
import { defineResource } from './resource.ts';
import { replaceEqualDeep } from './select.ts';

const jobs = defineResource<KubeObject & { readonly status?: { readonly active?: number } }>()({ group: 'batch', version: 'v1', plural: 'jobs' });

/** What a portal's developer writes first. */
function RunningJobs({ team }: { team: string }): ReactNode {
  const { data, status, reason } = useWatch(jobs, { namespace: team, fields: ['status.active'] });
  if (status === 'loading') return 'Loading';
  return `${reason ?? status}: ${data.filter((job) => job.status?.active).map((job) => job.metadata.name).join()}`;
}

let server: ScriptedFetch;
let kc: Kubecast;
beforeEach(() => {
  server = new ScriptedFetch();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
});
afterEach(() => kc.close());

const pages = (...teams: string[]): ReactNode =>
  createElement(StrictMode, undefined, createElement(KubecastProvider, { client: kc }, ...teams.map((team) => createElement(RunningJobs, { team, key: team }))));
const settle = (): Promise<void> => act(() => new Promise<void>((resolve) => setTimeout(resolve, 20)));
const open = () => server.requests.filter(({ aborted }) => !aborted);

test('the obvious component works in StrictMode, beside others on one stream, and leaves none behind', async () => {
  const at = document.createElement('div');
  const root = createRoot(at);
  act(() => root.render(pages('team-a', 'team-b')));
  expect(at.textContent).toBe('LoadingLoading');
  await settle();
  expect(open()).toHaveLength(1);
  server.last.accept(
    frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' }, status: { active: 1 } }),
    frame('w0.added', 'e', { metadata: { name: 'two', uid: '2' }, status: {} }),
    frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }),
    frame('w1.synced', 'e.w0-1.w1-1', { resourceVersion: '1', count: 0 }),
  );
  await settle();
  expect(at.textContent).toBe('live: onelive: ');
  act(() => root.unmount());
  await settle();
  expect(open()).toHaveLength(0);
});

test('a server renders it, and watches nothing', async () => {
  expect(renderToString(pages('team-a'))).toBe('Loading');
  await settle();
  expect(server.requests).toHaveLength(0);
});

describe('a component that selects', () => {
  let renders: string[];
  const at = document.createElement('div');
  let root: Root;
  const mount = (Part: () => ReactNode): void => {
    root = createRoot(at);
    act(() => root.render(createElement(KubecastProvider, { client: kc }, createElement(Part))));
  };
  const rendered = (what: string): string => {
    renders.push(what);
    return what;
  };
  beforeEach(() => (renders = []));
  afterEach(() => act(() => root.unmount()));
  const job = (uid: string, active: number, resourceVersion = '1'): object => ({ metadata: { name: `job-${uid}`, uid, resourceVersion }, status: { active } });

  test('is rendered anew when that changes or its status does, and not for what it does not show', async () => {
    let given: readonly (readonly string[])[] = [];
    mount(() => {
      const { data, status } = useWatch(jobs, {}, { select: (all) => all.filter((one) => one.status?.active).map((one) => [one.metadata.name]) });
      given = data;
      expectTypeOf(data).toEqualTypeOf<string[][]>();
      return rendered(`${status} ${data.join()}`);
    });
    await settle();
    const body = server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.added', 'e', job('b', 0)) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }));
    await settle();
    const [first] = given;
    expect(renders.splice(0)).toEqual(['loading ', 'live job-a']);
    body.push(frame('w0.modified', 'e.w0-2', job('a', 7, '2')) + frame('w0.added', 'e.w0-3', job('c', 0, '3')));
    await settle();
    expect(renders.splice(0)).toEqual([]);
    body.push(frame('w0.modified', 'e.w0-4', job('c', 1, '4')));
    await settle();
    expect(renders.splice(0)).toEqual(['live job-a,job-c']);
    expect(given[0]).toBe(first); // what is equal is the same one
    body.push(frame('w0.stale', 'e.w0-4', { since: new Date(0).toISOString(), reason: 'disconnected' }));
    await settle();
    expect(renders.splice(0)).toEqual(['stale job-a,job-c']);
  });

  test('of what is identical only, if it says so', async () => {
    mount(() => {
      const { data, status } = useObject(jobs, { name: 'job-a' }, { select: (one) => ({ active: one?.status?.active }), structuralSharing: false });
      return rendered(`${status} ${data.active}`);
    });
    await settle();
    const body = server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
    await settle();
    expect(renders.splice(0)).toEqual(['loading undefined', 'live 1']);
    body.push(frame('w0.modified', 'e.w0-2', job('a', 1, '2')));
    await settle();
    expect(renders.splice(0)).toEqual(['live 1']); // a new object, though equal
  });

  test('with a function that reads what the component was given last, shows what it selects of that', async () => {
    let choose: (name: string) => void = () => undefined;
    mount(() => {
      const [name, setName] = useState('job-a');
      choose = setName;
      const { data } = useWatch(jobs, {}, { select: (all) => all.find((one) => one.metadata.name === name)?.status?.active });
      return rendered(`${name} ${data}`);
    });
    await settle();
    server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.added', 'e', job('b', 2)) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }));
    await settle();
    act(() => choose('job-b'));
    expect(renders.splice(0)).toEqual(['job-a undefined', 'job-a 1', 'job-b 2']);
  });

  test('of a live page keeps what it selected while the next one is not there', async () => {
    let go: (offset: number) => void = () => undefined;
    mount(() => {
      const [offset, setOffset] = useState(0);
      go = setOffset;
      const { data, total } = useLivePage(jobs, { limit: 1, offset }, { select: (rows) => rows.map(({ metadata }) => metadata.name).join() });
      return `${data} of ${total}`;
    });
    await settle();
    server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.page', 'e.w0-1', { uids: ['a'], offset: 0, total: 2, resourceVersion: '1' }));
    await settle();
    act(() => go(1));
    await settle();
    expect(at.textContent).toBe('job-a of 2');
  });

  test('lists of a live page, which are other ones each time, is rendered as often as they change', async () => {
    mount(() => {
      const { data, total } = useLivePage(jobs, { limit: 2 }, { select: (rows) => rows.map(({ metadata }) => [metadata.name]) });
      return rendered(`${data.join()} of ${total}`);
    });
    await settle();
    const body = server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.page', 'e.w0-1', { uids: ['a'], offset: 0, total: 2, resourceVersion: '1' }));
    await settle();
    body.push(frame('w0.added', 'e.w0-1', job('b', 1)) + frame('w0.page', 'e.w0-2', { uids: ['a', 'b'], offset: 0, total: 2, resourceVersion: '2' }));
    await settle();
    expect(renders).toEqual([' of undefined', 'job-a of 2', 'job-a,job-b of 2']);
  });

  test('that throws, throws in the component', async () => {
    mount(() => {
      const { data } = useWatch(jobs, {}, { select: (all) => all.map((one) => (one as unknown as { spec: { x: string } }).spec.x) });
      return data.join();
    });
    await settle();
    server.last.accept(frame('w0.added', 'e', job('a', 1)) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
    await expect(settle()).rejects.toThrow(TypeError);
  });
});

test('equal parts are kept, and nothing else is taken for equal', () => {
  const before = { a: [{ x: 1 }, { y: NaN }], b: { c: 'd' } };
  const now = { a: [{ x: 1 }, { y: NaN }], b: { c: 'e' } };
  expect(replaceEqualDeep(before, structuredClone(before))).toBe(before);
  const shared = replaceEqualDeep(before, now);
  expect(shared).toEqual(now);
  expect(shared.a).toBe(before.a);
  for (const [old, other] of [
    [[1, 2], [1]],
    [[1], [1, 2]],
    [[1], { 0: 1 }],
    [{ a: undefined }, { b: undefined }],
    [{}, []],
    [null, {}],
    [new Date(0), new Date(1)],
    [JSON.parse('{"__proto__": {"a": 1}}'), {}],
    [{}, JSON.parse('{"__proto__": {"a": 1}}')],
  ]) {
    expect(replaceEqualDeep(old, other)).toStrictEqual(other);
    expect(replaceEqualDeep(old, other)).not.toBe(old);
  }
  expect(({} as { a?: number }).a).toBeUndefined();
});

function Newest({ offset, search }: { offset: number; search?: string }): ReactNode {
  const { data, total, status, reason } = useLivePage(jobs, { offset, search, limit: 2, fields: ['status.active'] });
  const { data: states } = useCount(jobs, ['status.active']);
  return `${reason ?? status} ${data.map((job) => job.metadata.name).join()} of ${total ?? '?'}, ${states.map(({ value, count }) => `${value}=${count}`).join()}`;
}

test('when another page is asked for, the one before stays until that is complete', async () => {
  const at = document.createElement('div');
  const root = createRoot(at);
  const show = (props: { offset: number; search?: string }): void =>
    act(() => root.render(createElement(StrictMode, undefined, createElement(KubecastProvider, { client: kc }, createElement(Newest, props)))));
  show({ offset: 0 });
  await settle();
  expect(at.textContent).toBe('loading  of ?, ');
  server.last.accept(
    frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' } }),
    frame('w0.page', 'e.w0-1', { uids: ['1'], offset: 0, total: 3, resourceVersion: '1' }),
    frame('w1.counts', 'e.w0-1.w1-1', { counts: [{ value: '1', count: 3 }], resourceVersion: '1' }),
  );
  await settle();
  expect(at.textContent).toBe('live one of 3, 1=3');
  show({ offset: 2 });
  await settle();
  expect(at.textContent).toBe('catching-up one of 3, 1=3');
  const body = server.last.accept(frame('w2.added', 'e.w0-1.w1-1', { metadata: { name: 'three', uid: '3' } }), frame('w2.page', 'e.w0-1.w1-1.w2-2', { uids: ['3'], offset: 2, total: 3, resourceVersion: '2' }));
  await settle();
  expect(at.textContent).toBe('live three of 3, 1=3');
  body.push(frame('w2.deleted', 'e.w0-1.w1-1.w2-2', { metadata: { name: 'three', uid: '3' } }) + frame('w2.page', 'e.w0-1.w1-1.w2-3', { uids: [], offset: 2, total: 2, resourceVersion: '3' }));
  await settle();
  expect(at.textContent).toBe('live  of 2, 1=3');
  show({ offset: 0, search: 'x' });
  await settle();
  expect(at.textContent).toBe('catching-up  of 2, 1=3');
  act(() => root.unmount());
});

test('below a Suspense one object and a live page are not rendered before they are there', async () => {
  function Train(): ReactNode {
    const { data: train } = useSuspenseObject(jobs, { namespace: 'a', name: 'train' });
    return `${train?.metadata.name} ${useSuspenseFollow(page(jobs, { limit: 1 })).total}`;
  }
  kc.close();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 200 });
  const at = document.createElement('div');
  const root = createRoot(at);
  act(() => root.render(createElement(KubecastProvider, { client: kc }, createElement(Suspense, { fallback: 'waiting' }, createElement(Train)))));
  await settle();
  expect(at.textContent).toBe('waiting');
  server.last.accept(frame('w0.added', 'e', { metadata: { name: 'train', uid: '1' } }), frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await settle();
  expect(at.textContent).toBe('waiting');
  server.last.accept(frame('w1.page', 'e.w0-1.w1-1', { uids: [], offset: 0, total: 7, resourceVersion: '1' }));
  await settle();
  expect(at.textContent).toBe('train 7');
  act(() => root.unmount());
});

test('below a Suspense nothing that is asked for or followed is rendered before it is there, whatever it is', async () => {
  const gateway = new MockGateway();
  new MockWorld(gateway, { jobs: 5 });
  kc.close();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
  const rendered: Record<string, Set<string>> = {};
  const parts: Record<string, () => { readonly status: string }> = {
    me: () => useSuspenseMe(),
    access: () => useSuspenseAccess(jobs, { namespace: 'team-a', verb: 'watch' }),
    history: () => useSuspenseHistory(jobs, { owner: 'me' }),
    queue: () => useSuspenseQueue('team-nlp', 'gpu'),
    queues: () => useSuspenseQueues(),
    notifications: () => useSuspenseNotifications(),
  };
  const part = (name: string, use: () => { readonly status: string }) => {
    const seen = (rendered[name] = new Set<string>());
    return function Part(): ReactNode {
      const { status } = use();
      seen.add(status);
      return `${name} `;
    };
  };
  const at = document.createElement('div');
  const root = createRoot(at);
  const all = Object.entries(parts).map(([name, use]) => createElement(Suspense, { fallback: 'waiting ', key: name }, createElement(part(name, use))));
  act(() => root.render(createElement(KubecastProvider, { client: kc }, ...all)));
  expect(at.textContent).toBe('waiting '.repeat(all.length));
  const end = Date.now() + 60_000;
  while (at.textContent.includes('waiting') && Date.now() < end) await settle();
  expect(at.textContent).toBe(Object.keys(parts).map((name) => `${name} `).join(''));
  for (const [name, seen] of Object.entries(rendered)) expect([...seen], name).not.toContain('loading');
  act(() => root.unmount());
  gateway.cutAll();
});

test('below a Suspense two that take longer than linger are there in the end, and are left with the component', async () => {
  function Two(): ReactNode {
    const { data: one } = useSuspenseObject(jobs, { namespace: 'a', name: 'one' });
    const { data: two } = useSuspenseObject(jobs, { namespace: 'b', name: 'two' });
    return `${one?.metadata.name} ${two?.metadata.name}`;
  }
  const at = document.createElement('div');
  const root = createRoot(at);
  act(() => root.render(createElement(KubecastProvider, { client: kc }, createElement(Suspense, { fallback: 'waiting' }, createElement(Two)))));
  await settle();
  server.last.accept(frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' } }), frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await settle();
  await settle(); // it has taken longer than linger, which is 1 ms
  expect(at.textContent).toBe('waiting');
  server.last.accept(frame('w1.added', 'e.w0-1', { metadata: { name: 'two', uid: '2' } }), frame('w1.synced', 'e.w0-1.w1-1', { resourceVersion: '1', count: 1 }));
  await settle();
  expect(at.textContent).toBe('one two');
  act(() => root.unmount());
  await settle();
  expect(open()).toHaveLength(0);
});

test('below a Suspense nothing is rendered before something complete is there, and a transition to another team shows the old one until then', async () => {
  function Names({ team }: { team: string }): ReactNode {
    const { data, status } = useSuspenseWatch(jobs, { namespace: team });
    return `${team} ${status}: ${data.map((job) => job.metadata.name).join()}`;
  }
  let move: (team: string) => void = () => undefined;
  function Teams(): ReactNode {
    const [team, setTeam] = useState('a');
    const [pending, begin] = useTransition();
    move = (to) => begin(() => setTeam(to));
    return createElement('p', {}, pending ? 'moving ' : '', createElement(Suspense, { fallback: 'waiting' }, createElement(Names, { team })));
  }
  kc.close();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 200 }); // while a component is away
  const at = document.createElement('div');
  const root = createRoot(at);
  act(() => root.render(createElement(StrictMode, undefined, createElement(KubecastProvider, { client: kc }, createElement(Teams)))));
  await settle();
  expect(at.textContent).toBe('waiting');
  expect(open()).toHaveLength(1);
  const body = server.last.accept(frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' } }) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await settle();
  expect(at.textContent).toBe('a live: one');
  act(() => move('b'));
  await settle();
  expect(at.textContent).toBe('moving a live: one');
  body.push(frame('w0.added', 'e.w0-2', { metadata: { name: 'two', uid: '2' } }));
  await settle();
  server.last.accept(frame('w1.added', 'e.w0-2', { metadata: { name: 'three', uid: '3' } }) + frame('w1.synced', 'e.w0-2.w1-2', { resourceVersion: '2', count: 1 }));
  await settle();
  await settle();
  expect(at.textContent).toBe('b live: three');
  act(() => root.unmount());
  await new Promise((resolve) => setTimeout(resolve, 250));
  expect(open()).toHaveLength(0);
});

test('what a server has rendered is what the browser begins with, without asking for it again', async () => {
  const rendering = ready(kc.watch(jobs, { namespace: 'team-a', fields: ['status.active'] }));
  await settle();
  server.last.accept(frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' }, status: { active: 1 } }) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await rendering;
  const state = JSON.parse(JSON.stringify(dehydrate(kc))) as Dehydrated;
  const at = document.createElement('div');
  at.innerHTML = renderToString(pages('team-a'));
  expect(at.textContent).toBe('reconnecting: one');
  kc.close();

  server = new ScriptedFetch();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  hydrate(kc, state);
  const complaints: unknown[] = [];
  let root: Root | undefined;
  act(() => void (root = hydrateRoot(at, pages('team-a'), { onRecoverableError: (error) => complaints.push(error) })));
  await settle();
  expect(at.textContent).toBe('reconnecting: one');
  expect(server.last.headers.get('Last-Event-ID')).toBe('e.w0-1');
  server.last.accept(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }));
  await settle();
  expect(at.textContent).toBe('live: one');
  expect(complaints).toEqual([]);
  act(() => root?.unmount());
});
