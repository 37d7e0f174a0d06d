// @vitest-environment happy-dom
// What the guides tell people to write runs against a gateway in memory. That it compiles, and that no block is left out here, is in sdk/src/guide.test.ts.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement, useState, type FunctionComponent, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createKubecast, defineResource, type Kubecast, type KubeObject } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { MockGateway } from '../../mock/index.ts';
import { inMemory } from '../../mock/memory.ts';
import { jar } from './standins/next-headers.ts';

let gateway: MockGateway;
/** What the gateway answers below `/auth/`, by method and path. */
let auth: Record<string, (bearer: string) => { readonly status: number; readonly body?: object }>;
const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const opened: Kubecast[] = [];
const roots: Root[] = [];

beforeEach(() => {
  gateway = new MockGateway();
  gateway.users.set('', {}); // by the cookie
  auth = { 'GET /auth/session': () => ({ status: 200, body: { login: true, username: 'mara', expiresAt: new Date(Date.now() + 3_600_000).toISOString(), renewable: true } }) };
  const server = inMemory((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://gateway');
    const answer = auth[`${request.method} ${pathname}`]?.(String(request.headers['authorization'] ?? '').replace('Bearer ', ''));
    if (!answer) {
      if (gateway.away) response.socket?.destroy();
      else gateway.handle(request, response);
      return;
    }
    response.writeHead(answer.status, { 'Content-Type': 'application/json' });
    response.end(answer.body && JSON.stringify(answer.body));
  });
  vi.stubGlobal('fetch', server);
  sessionStorage.setItem('token', 'let-me-in');
  document.body.innerHTML = '<div id="app"></div>';
});
afterEach(() => {
  for (const root of roots.splice(0)) root.unmount();
  for (const kc of opened.splice(0)) kc.close();
  gateway.cutAll();
  vi.restoreAllMocks();
});

const keep = (kc: Kubecast): Kubecast => {
  opened.push(kc);
  return kc;
};
const connect = (): Kubecast => keep(createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch }));
const put = (name: string, active?: number) => gateway.cluster.put('jobs', { metadata: { name, namespace: 'team-a' }, ...(active === undefined ? {} : { status: { active } }) });
const said = (): string => document.body.textContent.replace(/\s+/g, ' ').trim();
const patiently = { timeout: 60_000, interval: 10 };
const shows = (text: string | RegExp): Promise<void> => expect.poll(said, patiently).toMatch(typeof text === 'string' ? new RegExp(`^${text.replace(/[/<>]/g, '\\$&')}$`) : text);
const mount = (node: ReactNode): void => {
  const app = document.getElementById('app');
  if (!app) throw new Error('there is no place for it');
  const root = createRoot(app);
  roots.push(root);
  root.render(node);
};
const show = (client: Kubecast, ...components: FunctionComponent<{ team: string }>[]): void =>
  mount(createElement(KubecastProvider, { client }, ...components.map((component) => createElement(component, { team: 'team-a' }))));
const click = (name: string): void => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === name)?.click();

describe('sign-in', () => {
  const assigned = (): string[] => {
    const to: string[] = [];
    vi.spyOn(location, 'assign').mockImplementation((address) => void to.push(String(address)));
    return to;
  };

  test('with a cookie: who has none goes to the provider, who has one watches, and who leaves has none', async () => {
    const { signIn, signOut } = await import('guide:sign-in/session.ts') as unknown as { signIn: () => Promise<Kubecast | undefined>; signOut: (kc: Kubecast) => Promise<void> };
    const to = assigned();
    const there = auth['GET /auth/session'];
    auth['GET /auth/session'] = () => ({ status: 200, body: { login: true, username: '', renewable: false } });
    expect(await signIn()).toBeUndefined();
    expect(to).toEqual([expect.stringMatching(/^\/auth\/login\?returnTo=/)]);

    if (there) auth['GET /auth/session'] = there;
    put('train');
    const kc = await signIn();
    if (!kc) throw new Error('nobody is signed in');
    const { jobs } = await import('guide:errors/kubernetes.ts') as unknown as { jobs: Parameters<Kubecast['watch']>[0] };
    const watch = keep(kc).watch(jobs);
    watch.subscribe(() => undefined);
    await expect.poll(() => watch.getSnapshot().data.length, patiently).toBe(1);

    auth['POST /auth/logout'] = () => ({ status: 200, body: { location: 'https://login.example.org/end' } });
    await signOut(kc);
    expect(to[1]).toBe('https://login.example.org/end');
    expect(watch.getSnapshot().status).toBe('failed');
  });

  test('a token becomes a cookie, unless it is refused', async () => {
    const { exchange } = await import('guide:sign-in/exchange.ts') as unknown as { exchange: (token: string) => Promise<boolean> };
    auth['POST /auth/session'] = (bearer) => ({ status: bearer === 'good' ? 200 : 401 });
    expect([await exchange('good'), await exchange('bad')]).toEqual([true, false]);
    auth['POST /auth/session'] = () => ({ status: 503 });
    await expect(exchange('good')).rejects.toThrow('HTTP 503');
  });

  test('a token that was pasted is a cookie, with which other tabs begin', async () => {
    const { resume, signIn } = await import('guide:readme/pasted.ts') as unknown as { resume: () => Promise<Kubecast | undefined>; signIn: (token: string) => Promise<Kubecast | undefined> };
    const there = auth['GET /auth/session'];
    let cookie = false;
    auth['GET /auth/session'] = (bearer) => (cookie && there ? there(bearer) : { status: 200, body: { login: false, username: '', renewable: false } });
    auth['POST /auth/session'] = (bearer) => ({ status: (cookie = bearer === 'good') ? 200 : 401 });
    expect([await resume(), await signIn('bad')]).toEqual([undefined, undefined]);
    put('train');
    const kc = await signIn(' good\n');
    const other = await resume();
    if (!kc || !other) throw new Error('nobody is signed in');
    const watch = keep(other).watch(jobs);
    watch.subscribe(() => undefined);
    await expect.poll(() => watch.getSnapshot().data.length, patiently).toBe(1);
    keep(kc);
    cookie = false;
    auth['POST /auth/session'] = () => ({ status: 200 }); // by http, browsers keep no such cookie but of localhost
    await expect(signIn('good')).rejects.toThrow('cookie');
    auth['POST /auth/session'] = () => ({ status: 404 });
    await expect(signIn('good')).rejects.toThrow('HTTP 404');
  });

  test('a token that is refused is replaced, and the user is told when there is no other', async () => {
    const { connect: connectTo } = await import('guide:sign-in/token.ts') as unknown as { connect: (gateway: string, tokens: object) => Kubecast };
    const { Who } = await import('guide:sign-in/Who.tsx') as unknown as { Who: FunctionComponent };
    const { Jobs } = await import('guide:errors/Jobs.tsx') as unknown as { Jobs: FunctionComponent<{ team: string }> };
    let next: string | undefined = 'let-me-in';
    const kc = keep(connectTo('', { current: () => Promise.resolve('old'), renew: () => Promise.resolve(next) }));
    put('train');
    auth['GET /auth/me'] = () => ({ status: 200, body: { username: 'mara' } });
    show(kc, Who, Jobs);
    await shows('maratrain');
    next = undefined;
    gateway.users.clear();
    gateway.cutAll();
    await shows('Sign in againthe token is not valid Try again');
  });
});

describe('errors', () => {
  test('a page says what is old, what is denied, and what the connection is', async () => {
    const { Jobs } = await import('guide:errors/Jobs.tsx') as unknown as { Jobs: FunctionComponent<{ team: string }> };
    const { Connection } = await import('guide:errors/Connection.tsx') as unknown as { Connection: FunctionComponent };
    put('train');
    const kc = connect();
    show(kc, Connection, Jobs);
    await shows('train');
    gateway.away = true;
    gateway.cutAll();
    await shows(/^The gateway does not answer: .*Try nowAs of .*train$/);
    gateway.away = false;
    click('Try now');
    await shows('train');
    gateway.users.set('let-me-in', { namespaces: ['team-b'] });
    gateway.cutAll();
    await shows(/^you may not watch jobs in the namespace team-a Try again$/);
    gateway.users.set('let-me-in', {});
    click('Try again');
    await shows('train');
    gateway.users.clear();
    gateway.cutAll();
    await shows('Sign in againthe token is not valid Try again');
  });

  test('no history is no error, and another answer is', async () => {
    const { mine } = await import('guide:errors/past.ts') as unknown as { mine: (kc: Kubecast) => Promise<readonly unknown[]> };
    let status = 404;
    const kc = keep(createKubecast({ token: () => 't', fetch: inMemory((_, response) => void response.writeHead(status, {}).end()) }));
    expect(await mine(kc)).toEqual([]);
    status = 403;
    await expect(mine(kc)).rejects.toThrow('403');
  });
});

test('TanStack Query: a list follows what is told, of the team that is chosen, and says when it is denied', async () => {
  const { Jobs } = (await import('guide:tanstack-query/Jobs.tsx')) as unknown as { Jobs: FunctionComponent<{ kc: Kubecast; team: string | undefined }> };
  const client = new QueryClient();
  const kc = connect();
  const Page = () => {
    const [team, choose] = useState<string>();
    return createElement(QueryClientProvider, { client }, createElement(Jobs, { kc, team }), createElement('button', { onClick: () => choose('team-a') }, 'Team A'));
  };
  put('train');
  mount(createElement(Page));
  await shows('Choose a teamTeam A');
  click('Team A');
  await shows('trainTeam A');
  put('eval');
  await shows('trainevalTeam A');
  gateway.users.set('let-me-in', { namespaces: ['team-b'] });
  gateway.cutAll();
  await shows(/^you may not watch jobs in the namespace team-aTeam A$/);
  client.clear();
});

test('tabs: where tabs cannot share, a page has a stream of its own, until it leaves', async () => {
  const { kc, leave } = await import('guide:tabs/kc.ts') as unknown as { kc: Kubecast; leave: () => void };
  const { Jobs } = await import('guide:errors/Jobs.tsx') as unknown as { Jobs: FunctionComponent<{ team: string }> };
  put('train');
  show(keep(kc), Jobs);
  await shows('train');
  leave();
});

test('other runtimes: a program says what runs, until it is stopped', async () => {
  const { watch } = (await import('guide:runtimes/watch.ts')) as unknown as { watch: (gateway: string, token: () => string, say: (line: string) => void, signal: AbortSignal) => Promise<void> };
  const said: string[] = [];
  const stop = new AbortController();
  put('train', 1);
  put('waits');
  const ended = watch('', () => 'let-me-in', (line) => void said.push(line), stop.signal);
  await expect.poll(() => said.at(-1), patiently).toBe('train');
  put('eval', 1);
  await expect.poll(() => said.at(-1), patiently).toBe('train, eval');
  stop.abort();
  await ended;
});

describe('server rendering', () => {
  /** How long the guide's pages wait; by themselves two seconds, which a busy machine may need. */
  let waits: () => AbortSignal;
  beforeEach(() => {
    waits = () => new AbortController().signal;
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => waits());
  });
  /** Of the stream that was asked for last. */
  const position = (): string | undefined => gateway.requests.at(-1)?.lastEventId;

  test('plain: the browser goes on from where the server stopped, without a snapshot', async () => {
    const { page } = await import('guide:ssr/server.tsx') as unknown as { page: (gateway: string, token: string) => Promise<string> };
    put('train </script>', 1);
    document.documentElement.innerHTML = await page('', 'let-me-in');
    expect(document.querySelector('#app')?.textContent).toBe('train </script>');
    put('eval', 1);
    const { kc } = await import('guide:ssr/client.tsx') as unknown as { kc: Kubecast };
    keep(kc);
    await expect.poll(() => document.querySelector('#app')?.textContent, patiently).toBe('train </script>eval');
    expect(position()).not.toBe('');
    gateway.away = true;
    waits = () => AbortSignal.abort();
    document.documentElement.innerHTML = await page('', 'let-me-in'); // what cannot be had is left to the browser
    expect(document.querySelector('#app')?.textContent).toBe('');
  });

  test('Next: so it is there', async () => {
    const { default: Page } = await import('guide:ssr/app/page.tsx') as unknown as { default: () => Promise<{ readonly type: FunctionComponent; readonly props: object }> };
    jar.set('token', { value: 'let-me-in' });
    put('train', 1);
    const { type, props } = await Page();
    put('eval', 1);
    mount(createElement(type, props));
    await shows('traineval');
    expect(position()).not.toBe('');
  });
});

// It has tests of its own.
describe('testing', () => import('guide:testing/Jobs.test.tsx') as unknown as Promise<void>);

// The last of them: nobody ends their pages.
describe('of each framework', () => {
  const start: Record<string, () => Promise<unknown>> = {
    vue: () => import('guide:vue/main.ts'),
    svelte: () => import('guide:svelte/main.ts'),
    solid: () => import('guide:solid/main.tsx'),
  };
  test.each(Object.entries(start))('%s: jobs come and go, and one is chosen', async (_, begin) => {
    const { metadata } = put('train', 1);
    put('waits');
    await begin();
    await shows('train ?Choose a job');
    put('eval', 2);
    await shows('traineval ?Choose a job');
    click('eval');
    await shows('traineval ?eval: 2 active');
    gateway.cluster.remove('jobs', metadata.uid);
    await shows('eval ?eval: 2 active');
  });
});
