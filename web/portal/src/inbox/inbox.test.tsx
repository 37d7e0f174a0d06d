import type { JobNotification, Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act, type ReactNode } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { MockInbox } from '../../../mock/told.ts';
import { ServedClusters } from '../clusters/served.ts';
import { parseView } from '../view/view.ts';
import { Bell } from './Bell.tsx';
import './InboxPanel.tsx'; // or the first test would have to load it in its time
import { useShows } from './seen.ts';
import { due } from './notices.ts';
import { shortened } from './Settings.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
let inbox: MockInbox;
let body: ScriptedBody;

eachPage((made) => ({ server, kc } = made));
beforeEach(() => {
  inbox = new MockInbox();
  page = render(
    <KubecastProvider client={kc}>
      <Bell view={parseView('#mine')} user="mara" />
    </KubecastProvider>,
  );
});
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const open = async (): Promise<void> => {
  await pass();
  const told = inbox.newest(100).map(({ data }) => frame('w0.notification', 'e', data));
  body = server.last.accept(...told, frame('w0.synced', `e.w0-${inbox.seq}`, { seq: String(inbox.seq), count: told.length }));
  await pass();
};
const bell = (): HTMLButtonElement | null => page.element.querySelector('.bell-button');
/** It is loaded when it is first opened. */
const openPanel = async (): Promise<void> => {
  page.act(() => bell()?.click());
  while (!page.element.querySelector('.inbox')) await pass();
};
const press = (key: string): void => page.act(() => document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })));

test('where nothing is recorded there is no bell', async () => {
  await pass();
  server.last.refuse(404);
  await pass();
  server.last.refuse(404);
  await pass(60_000);
  expect(bell()).toBeNull();
  expect(server.requests).toHaveLength(2);
});

test('a gateway whose history is away is told of, and what was there stays', async () => {
  await pass();
  server.last.accept(frame('goodbye', 'e', { reason: 'unavailable' })).end();
  await pass();
  expect(bell()).not.toBeNull();
  await openPanel();
  expect(page.element.textContent).toContain('Notifications cannot be told at the moment.');
  await pass(5_000);
  inbox.tell('train', 'Failed');
  await open();
  expect(page.element.textContent).not.toContain('at the moment');
  body.push(frame('goodbye', 'e.w0-1', { reason: 'unavailable' }));
  body.end();
  await pass(500);
  expect(page.element.textContent).toMatch(/As of \d.*cannot be told at the moment/);
  expect(page.element.textContent).not.toContain('the stream ended');
  expect(page.element.textContent).toContain('train failed');
});

test('a failure says why once that is found out, though it was told before', async () => {
  const at = new Date().toISOString();
  const failed = { seq: 'n1', cluster: 'default', resource: 'jobs.batch', namespace: 'team-a', namespaceUID: null, name: 'train', uid: 'u', resourceVersion: '0', from: 'Running', to: 'Failed', at, observedAt: at, late: false, attempt: 1, reason: 'BackoffLimitExceeded', message: '', owner: 'mara', cause: null };
  inbox.tell('train', 'Failed', { title: 'train failed: BackoffLimitExceeded', transition: failed });
  await open();
  await openPanel();
  await pass();
  expect(page.element.textContent).toContain('train failed: No retries left');
  const [item] = inbox.all(false);
  const answer = (cause: object | null, title: string): void =>
    server.last.refuse(200, {}, JSON.stringify({ items: [{ ...item, title, transition: { ...(item?.transition as object), cause } }], continue: '' }));
  answer(null, 'train failed: BackoffLimitExceeded');
  await pass(5_000);
  const text = 'main was OOM-killed (exit 137) on gpu-07';
  answer({ text, reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: 'train-x2k4d', node: 'gpu-07', pods: 1 }, `train failed: ${text}`);
  await pass();
  expect(page.element.textContent).toContain(`train failed: ${text}`);
  const pages = (): number => server.requests.filter(({ url }) => url.endsWith('/notifications?limit=200')).length;
  expect(pages()).toBe(2);
  await pass(60_000);
  expect(pages()).toBe(2); // all is known
  await pass(120_000);
  page.act(() => bell()?.click());
  await pass();
  page.act(() => bell()?.click());
  await pass();
  answer({ text, reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: 'train-x2k4d', node: 'gpu-07', pods: 1 }, `train failed: ${text}`);
  await pass();
  expect(page.element.textContent).toContain(`train failed: ${text}`); // also long after
});

test('all are read at one click, and unread again where the gateway refuses that', async () => {
  for (const name of ['a', 'b']) inbox.tell(name, 'Succeeded');
  await open();
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox, 2 unread');
  await openPanel();
  page.act(() => page.button('Mark all as read').click());
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox');
  await pass();
  server.last.refuse(503, {}, JSON.stringify({ detail: 'the database is away' }));
  await pass();
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox, 2 unread');
  expect(page.element.querySelector('[role=alert]')?.textContent).toContain('the database is away');
});

test('the keyboard opens it, goes on from one to the next, and comes back to the bell', async () => {
  for (const name of ['a', 'b']) inbox.tell(name, 'Succeeded');
  await open();
  await openPanel();
  expect(document.activeElement?.getAttribute('role')).toBe('dialog');
  page.act(() => page.element.querySelector<HTMLElement>('.inbox-mark')?.click());
  expect(document.activeElement?.textContent).toBe('a succeeded');
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox, 1 unread');
  press('Escape');
  expect(page.element.querySelector('[role=dialog]')).toBeNull();
  expect(document.activeElement).toBe(bell());
});

test('a setting that the gateway refuses is not shown as kept', async () => {
  await open();
  await openPanel();
  page.act(() => page.button('Settings').click());
  await pass();
  server.last.refuse(200, {}, JSON.stringify(inbox.settings));
  await pass();
  const box = (state: string) => [...page.element.querySelectorAll('label')].find(({ textContent }) => textContent === state)?.querySelector('input');
  expect([box('Failed')?.checked, box('Running')?.checked]).toEqual([true, false]);
  page.act(() => box('Running')?.click());
  expect(box('Running')?.checked).toBe(true);
  await pass();
  server.last.refuse(400, {}, JSON.stringify({ detail: 'no' }));
  await pass();
  expect(box('Running')?.checked).toBe(false);
  expect(page.element.querySelector('[role=alert]')?.textContent).toContain('did not take that');
});

test('a notice is due for what came after the last one, and is neither read nor silent', () => {
  const item = (id: string, more: Partial<JobNotification> = {}): JobNotification => ({
    id, at: Number(id), kind: 'Failed', title: id, transition: undefined, digest: [], more: 0, silent: false, read: false, ...more,
  });
  const ids = (items: readonly JobNotification[], id: string, at: number): string => due(items, { id, at }).map((one) => one.id).join();
  const items = [item('5'), item('4', { silent: true }), item('3', { read: true }), item('2'), item('1')];
  expect(ids(items, '1', 1)).toBe('2,5');
  expect(ids(items, '5', 5)).toBe('');
  expect(ids(items, 'gone', 2)).toBe('5'); // what was told last is kept no more
  expect(ids(items, '', 0)).toBe('1,2,5'); // there were none
  expect(ids([], '5', 5)).toBe('');
});

test.each([['5m0s', '5m'], ['1h0m0s', '1h'], ['0s', '0s'], ['', '0s'], ['90s', '90s'], ['10m0s', '10m'], ['1m30s', '1m30s'], ['10h0m0s', '10h']])('%s is %s', (long, short) => {
  expect(shortened(long)).toBe(short);
});

/** A job's page, of which only matters which run it shows. */
function Shows({ uid }: { uid: string | undefined }): ReactNode {
  useShows(uid);
  return <Bell view={parseView('#jobs/team-a/watched')} user="mara" />;
}
const showing = async (uid: string | undefined): Promise<void> => {
  page.unmount();
  page = render(
    <KubecastProvider client={kc}>
      <Shows uid={uid} />
    </KubecastProvider>,
  );
  inbox.tell('other', 'Failed');
  inbox.tell('watched', 'Failed');
  await open();
};

test('what is watched on its own page is read, whatever came before of the name, and stays read where that is refused', async () => {
  await showing('watched');
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox, 1 unread');
  await pass();
  expect(server.last.url).toContain('/notifications');
  server.last.refuse(503, {}, '{}');
  const asked = server.requests.length;
  await pass(100);
  expect(server.requests.length).toBe(asked);
});

test.each(['newer', undefined])("who looks at another run of a name, or at one that is not known yet, has not seen the older one's end: %s", async (uid) => {
  await showing(uid);
  expect(bell()?.getAttribute('aria-label')).toBe('Inbox, 2 unread');
});

test('runs of one name are told apart by when they ended', async () => {
  for (const name of ['train', 'train', 'other']) inbox.tell(name, 'Failed');
  await open();
  await openPanel();
  expect([...page.element.querySelectorAll('.inbox-items > li')].map((one) => one.querySelectorAll('time').length)).toEqual([1, 2, 2]);
});

test('below how a job ended it is not said again that it did', async () => {
  inbox.tell('hello', 'Succeeded');
  await open();
  await openPanel();
  expect(page.element.querySelector('.inbox-told')?.textContent).toMatch(/^hello succeededteam-a · \d+s ago$/);
});

test('where there are several clusters, an entry says of which one it is, and that it is one', async () => {
  page.unmount();
  page = render(
    <KubecastProvider client={kc}>
      <ServedClusters value={['default', 'west'].map((name) => ({ name, default: name === 'default', state: 'live' }))}>
        <Bell view={parseView('#mine')} user="mara" />
      </ServedClusters>
    </KubecastProvider>,
  );
  const { transition } = inbox.tell('train', 'Failed');
  inbox.tell('two', 'Digest', { transition: null, title: '1 job failed', digest: [transition] });
  await open();
  await openPanel();
  const text = (selector: string): string | undefined => page.element.querySelector(selector)?.textContent;
  expect(text('.inbox-items > li:last-child .inbox-when')).toContain('cluster default · team-a');
  expect(text('details .state-detail')).toBe('cluster default · Failed');
});
