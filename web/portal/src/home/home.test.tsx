import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch, type ScriptedRequest } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { MockPast } from '../../../mock/past.ts';
import { DatedByConnection } from '../connection/Dated.tsx';
import { parseView } from '../view/view.ts';
import { commandFor } from './HowTo.tsx';
import { HomePage } from './HomePage.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
let past: MockPast;

eachPage((made) => ({ server, kc } = made));
beforeEach(() => {
  past = new MockPast();
  location.hash = '#mine';
});
afterEach(() => page.unmount());

/** In steps: what is to be rendered waits for the end of an `act`. */
const pass = async (ms = 0): Promise<void> => {
  for (let left = ms; left >= 0; left -= 250) await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 250)));
};
const answered = new Set<ScriptedRequest>();
const asked = (): ScriptedRequest[] => server.requests.filter((request) => request.url.startsWith('/history') && !answered.has(request));
const answer = async (status = 200): Promise<void> => {
  for (const request of asked()) {
    answered.add(request);
    // A stream's question is not a page's: only its status counts.
    const isStream = request.url.includes('limit=0');
    request.refuse(status, {}, isStream ? '' : status === 200 ? JSON.stringify(past.list(new URL(request.url, 'http://x').searchParams)) : JSON.stringify({ detail: 'no history is kept' }));
  }
  await pass(10);
};
const show = async (): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <DatedByConnection>
        <HomePage view={parseView(location.hash)} />
      </DatedByConnection>
    </KubecastProvider>,
  );
  await pass(10);
};
const open = async (): Promise<ScriptedBody> => {
  const stream = server.requests.find(({ url }) => url.startsWith('/stream'));
  const names = [...new URL(stream?.url ?? '', 'http://x').searchParams.keys()].filter((name) => name.startsWith('w'));
  const body = stream?.accept(...names.map((name, n) => frame(`${name}.synced`, `e.${names.slice(0, n + 1).map((one) => `${one}-1`).join('.')}`, { seq: '1', count: 0 })));
  if (!body) throw new Error('no stream was asked for');
  await pass(10);
  await pass(1_000);
  await answer();
  return body;
};
const section = (title: string): string => page.element.querySelector(`[aria-label="${title}"]`)?.textContent ?? '';

test('what waits says why, what runs and what has ended stand apart, and a change is there without a reload', async () => {
  past.record('train', 'Running');
  past.record('wait', 'Pending', { reason: 'Unschedulable', message: '0/10 nodes are available' });
  past.record('over', 'Failed', { reason: 'DeadlineExceeded' });
  await show();
  await answer();
  const body = await open();
  expect(section('Waiting')).toContain('Unschedulable: 0/10 nodes are available');
  expect(section('Running')).toContain('train');
  expect(section('Ended in the last week')).toContain('Deadline exceeded');
  past.record('train', 'Succeeded');
  const transitions = new URL(server.requests.find(({ url }) => url.startsWith('/stream'))?.url ?? '', 'http://x').searchParams;
  const name = [...transitions].find(([, path]) => path.startsWith('/history'))?.[0] ?? '';
  expect(transitions.get(name)).toContain('owner=me');
  body.push(frame(`${name}.transition`, 'e', { seq: '9', name: 'train', to: 'Succeeded' }));
  await pass(1_000);
  await answer();
  expect(section('Running')).toContain('Nothing of yours runs.');
  expect(section('Ended in the last week')).toContain('train');
});

test('a job that was removed after its end has not ended by that', async () => {
  past.record('kept', 'Deleted', { at: new Date(Date.now() - 60_000).toISOString(), durations: { Running: 9 } });
  past.record('swept', 'Deleted', { endedAt: new Date(Date.now() - 3_600_000).toISOString(), durations: { Running: 9, Failed: 60 } });
  await show();
  await answer();
  const rows = [...page.element.querySelectorAll('li')].map((row) => row.textContent);
  // In the order of what they say.
  expect(rows).toEqual([expect.stringMatching(/^Deletedkept/), expect.stringMatching(/^Failedswept.*removed.*60m ago$/)]);
});

test('many changes at once are no many questions', async () => {
  past.record('train', 'Running');
  await show();
  await answer();
  const body = await open();
  const before = server.requests.length;
  for (let n = 0; n < 30; n++) {
    body.push(frame('w0.transition', 'e', { seq: String(n), name: 'train', to: 'Running' }) + frame('w1.transition', 'e', { seq: String(n), name: 'train', to: 'Running' }));
    await pass(60);
    await answer();
  }
  expect(server.requests.length - before).toBeGreaterThan(0);
  expect(server.requests.length - before).toBeLessThan(10);
});

test('a permission that comes back while the list is asked for has its stream followed again', async () => {
  past.record('train', 'Running');
  await show();
  await answer();
  const body = await open();
  body.push(frame('w0.transition', 'e', { seq: '2', name: 'train', to: 'Running' }) + frame('w1.transition', 'e', { seq: '2', name: 'train', to: 'Running' }));
  await pass(1_500);
  await answer();
  const seen = new Set(server.requests);
  const refuse = (status: number, path: string): number => {
    const asked = server.requests.filter((request) => request.url.includes(path) && !seen.has(request) && !request.aborted);
    for (const request of asked) {
      seen.add(request);
      request.refuse(status, {}, JSON.stringify({ detail: 'you may not' }));
    }
    return asked.length;
  };
  body.end(); // the permission is gone
  await pass(2_000);
  expect(refuse(403, '/stream')).toBe(1);
  await pass(10);
  expect(refuse(403, 'view=transitions')).toBe(1); // which of the paths it was
  refuse(200, '/notifications');
  await pass(10_000);
  await answer(); // the list, asked for once the permission is there again
  await pass(10);
  expect(refuse(200, 'view=transitions')).toBe(1);
  await pass(10);
  const stream = server.requests.findLast(({ url, aborted }) => url.startsWith('/stream') && !aborted);
  expect(decodeURIComponent(stream?.url ?? '')).toContain('view=transitions&owner=me');
});

test('whoever has no job yet is told how to have one, and what is copied is no more than a name to a shell', async () => {
  await show();
  await answer();
  for (const request of server.requests.filter(({ url }) => url.startsWith('/auth/me'))) request.refuse(200, {}, JSON.stringify({ username: "o'hara $(id)" }));
  await pass(10);
  expect(page.element.textContent).toContain("'kubecast.io/owner=o'\\''hara $(id)'");
  expect(commandFor('mara')).toContain("'kubecast.io/owner=mara'");
});

test('who has jobs already is told how to submit one as well, and who they are is only asked for then', async () => {
  past.record('train', 'Running');
  await show();
  await answer();
  await open();
  const help = page.element.querySelector('details.mine-howto');
  expect([help?.textContent, server.requests.some(({ url }) => url === '/auth/me')]).toEqual(['How to submit a job of your own', false]);
  act(() => {
    help?.setAttribute('open', '');
    help?.dispatchEvent(new Event('toggle'));
  });
  await pass(10);
  server.requests.find(({ url }) => url === '/auth/me')?.refuse(200, {}, JSON.stringify({ username: 'mara' }));
  await pass(10);
  expect(help?.querySelector('.copied code')?.textContent).toBe(commandFor('mara'));
});

test('without a history it says so; who asked for no page in particular comes to all jobs', async () => {
  await show();
  await answer(404);
  expect(page.element.textContent).toContain('This gateway keeps no history');
  expect(location.hash).toBe('#mine');
  page.unmount();
  location.hash = '';
  await show();
  await pass(1_000);
  await answer(404);
  expect(location.hash).toBe('#jobs');
});

test('what was read stays while the history is away, as of when it was, and is read again by itself', async () => {
  past.record('train', 'Running');
  await show();
  await answer();
  const body = await open();
  body.break();
  await pass(2_000);
  expect(section('Running')).toContain('train');
  expect(page.element.querySelector('[role=status]')?.textContent).toMatch(/^What is shown is as of \d/);
  expect(page.element.querySelector('[data-dated]')).not.toBeNull();
  page.unmount();
  await show();
  await answer(503);
  expect(section('Running')).toContain('train');
  past.record('train', 'Succeeded');
  await pass(10_000);
  await answer();
  expect(section('Ended in the last week')).toContain('train');
});

test('of what was removed before it ran it is told how long ago, as of all that has ended', async () => {
  past.record('gone', 'Pending');
  past.record('gone', 'Deleted');
  past.record('over', 'Failed', { reason: 'DeadlineExceeded' });
  await show();
  await answer();
  await open();
  await pass(5_000);
  const ages = [...page.element.querySelectorAll('li')].map((one) => `${one.dataset['name']} ${one.querySelector('.mine-age')?.textContent}`);
  expect(ages).toEqual([expect.stringMatching(/^\w+ \d+s ago$/), expect.stringMatching(/^\w+ \d+s ago$/)]);
});

test('a run that was found late is not said to be as young as the finding', async () => {
  past.record('seen', 'Running', { waited: { seconds: 4, since: null } });
  past.record('late', 'Running', { waited: null });
  await show();
  await answer();
  await pass(8_000);
  const age = (name: string): string => page.element.querySelector(`li[data-name="${name}"] .mine-age`)?.textContent ?? '';
  expect(age('seen')).toMatch(/^\d+s$/);
  expect(age('late')).toMatch(/^≥ \d+s$/);
});

test('whoever looks for a run of theirs that ended before the last week is led to their own in the history', async () => {
  past.record('train', 'Running');
  await show();
  await answer();
  const older = [...page.element.querySelectorAll('a')].find(({ textContent }) => textContent === 'Your history');
  expect(parseView(older?.getAttribute('href') ?? '')).toMatchObject({ page: 'history', owner: 'me' });
});
