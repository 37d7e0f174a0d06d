// @vitest-environment happy-dom
// Lists that grow page by page, in React: what is selected, what suspends, and what becomes of a page that is under way.

import { act, createElement, StrictMode, Suspense, useState, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, expectTypeOf, test } from 'vitest';
import '../../mock/setup.ts';
import { MockGateway } from '../../mock/gateway.ts';
import { MockPast } from '../../mock/past.ts';
import type { PastJob } from './history.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { KubecastProvider, useHistory, useInfiniteList, useLivePage, useSuspenseHistory, useSuspenseInfiniteList } from './react.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject & { readonly status?: { readonly active?: number } }>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const names = (all: readonly KubeObject[]): string => all.map(({ metadata }) => metadata.name).join();

let gateway: MockGateway;
let kc: Kubecast;
let root: Root;
const at = document.createElement('div');
beforeEach(() => {
  gateway = new MockGateway();
  gateway.past = new MockPast();
  for (let n = 1; n <= 5; n++) {
    gateway.cluster.put('jobs', { metadata: { name: `job-${n}`, namespace: 'team-a' } });
    gateway.cluster.put('jobs', { metadata: { name: `other-${n}`, namespace: 'team-b' } });
    gateway.past.record(`past-${n}`, 'Running', { at: new Date(n * 1_000_000).toISOString() });
  }
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
});
afterEach(() => {
  act(() => root.unmount());
  kc.close();
  gateway.cutAll();
});

function mount(Part: () => ReactNode): void {
  root = createRoot(at);
  act(() => root.render(createElement(StrictMode, undefined, createElement(KubecastProvider, { client: kc }, createElement(Suspense, { fallback: 'waiting' }, createElement(Part))))));
}

async function shows(text: string): Promise<void> {
  const end = performance.now() + 60_000;
  while (at.textContent !== text && performance.now() < end) await act(() => new Promise((resolve) => setTimeout(resolve, 5)));
  expect(at.textContent).toBe(text);
}

test('a list grows, and what is selected of it, too; another question is a list of its own, whatever was under way', async () => {
  let more: () => void = () => undefined;
  let choose: (namespace: string) => void = () => undefined;
  const seen = new Set<string>();
  mount(() => {
    const [namespace, setNamespace] = useState('team-a');
    choose = setNamespace;
    const { data, status, hasNextPage, isFetchingNextPage, fetchNextPage, total } = useInfiniteList(jobs, { namespace, limit: 2, fields: ['status.active'] }, { select: names });
    expectTypeOf(data).toEqualTypeOf<string>();
    expectTypeOf(fetchNextPage).toEqualTypeOf<() => void>();
    more = fetchNextPage;
    const text = `${status} ${data} of ${total}${hasNextPage ? ' more' : ''}${isFetchingNextPage ? ' coming' : ''}`;
    seen.add(text);
    return text;
  });
  await shows('live job-1,job-2 of 5 more');
  act(() => more());
  await shows('live job-1,job-2,job-3,job-4 of 5 more');
  act(() => more());
  act(() => choose('team-b'));
  await shows('live other-1,other-2 of 5 more');
  expect([...seen]).toContain('stale job-1,job-2,job-3,job-4 of 5'); // the rows before stay until then
  act(() => more());
  await shows('live other-1,other-2,other-3,other-4 of 5 more');
  act(() => choose('team-a'));
  await shows('live job-1,job-2,job-3,job-4,job-5 of 5'); // as it was left, with what was under way
  expect([...seen].filter((text) => text.includes('job') && text.includes('other'))).toEqual([]);
});

test('the rows before are not held for another user, nor for another kind', async () => {
  const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });
  const other = createKubecast({ token: () => 'somebody-else', fetch: () => new Promise<Response>(() => undefined) });
  let choose: (kind: typeof pods) => void = () => undefined;
  const Part = (): ReactNode => {
    const [kind, setKind] = useState<typeof pods>(jobs);
    choose = (next) => setKind(next);
    const list = useInfiniteList(kind, { limit: 2 });
    const page = useLivePage(kind, { limit: 2, offset: 1 }, { select: names });
    return `${list.status} ${names(list.data)}; ${page.status} ${page.data}`;
  };
  const of = (client: Kubecast): ReactNode => createElement(KubecastProvider, { client }, createElement(Part));
  root = createRoot(at);
  act(() => root.render(of(kc)));
  await shows('live job-1,job-2; live job-2,job-3');
  gateway.away = true;
  act(() => choose(pods));
  expect(at.textContent).toBe('loading ; loading ');
  act(() => choose(jobs));
  await shows('live job-1,job-2; live job-2,job-3');
  act(() => root.render(of(other)));
  expect(at.textContent).toBe('loading ; loading ');
  act(() => other.close());
});

test('below a Suspense the first page suspends, and no other', async () => {
  let more: () => void = () => undefined;
  const seen: string[] = [];
  mount(() => {
    const { data, fetchNextPage } = useSuspenseInfiniteList(jobs, { namespace: 'team-a', limit: 2 });
    const past = useSuspenseHistory(jobs, { limit: 2 });
    expectTypeOf(past.data).toEqualTypeOf<readonly PastJob[]>();
    more = () => {
      fetchNextPage();
      past.fetchNextPage();
    };
    return `${names(data)} ${past.data.map(({ name }) => name).join()}`;
  });
  seen.push(at.textContent);
  await shows('job-1,job-2 past-5,past-4');
  act(() => more());
  const end = performance.now() + 60_000;
  while (!at.textContent.endsWith('past-2') && performance.now() < end) {
    await act(() => new Promise((resolve) => setTimeout(resolve, 5)));
    seen.push(at.textContent);
  }
  await shows('job-1,job-2,job-3,job-4 past-5,past-4,past-3,past-2');
  expect(seen.lastIndexOf('waiting')).toBe(0);
});

test('who selects of a history is rendered anew when that changes, and not for each transition', async () => {
  let renders = 0;
  let more: () => void = () => undefined;
  mount(() => {
    renders++;
    const { data, status, hasNextPage, fetchNextPage, ...rest } = useHistory(jobs, { limit: 2 }, { select: (all) => all.map(({ name }) => name) });
    expectTypeOf(data).toEqualTypeOf<string[]>();
    expectTypeOf(rest).not.toHaveProperty('transitions');
    more = fetchNextPage;
    return `${status} ${data.join()}${hasNextPage ? ' more' : ''}`;
  });
  await shows('live past-5,past-4 more');
  const before = renders;
  gateway.past?.record('past-5', 'Succeeded');
  await act(() => new Promise((resolve) => setTimeout(resolve, 1_500)));
  expect(renders).toBe(before);
  act(() => more());
  await shows('live past-5,past-4,past-3,past-2 more');
  gateway.past?.record('past-9', 'Submitted', { at: new Date(9_000_000).toISOString() });
  await shows('live past-9,past-5,past-4,past-3 more');
});
