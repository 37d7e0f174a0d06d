import { KubecastProvider } from '@kubecast/sdk/react';
import type { Kubecast } from '@kubecast/sdk';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { JobsPage } from '../jobs/JobsPage.tsx';
import { podColumns } from '../pods/columns.tsx';
import { TableHeader } from './TableHeader.tsx';
import { setView, useView } from '../view/view.ts';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
beforeEach(() => (location.hash = '#jobs'));
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));

function Shown() {
  return <JobsPage view={useView()} />;
}

const show = async (): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <Shown />
    </KubecastProvider>,
  );
  await pass();
};
const asked = (): [name: string, path: URL][] =>
  [...new URL(server.last.url, 'http://x').searchParams].filter(([, path]) => path.startsWith('/')).map(([name, path]) => [name, new URL(path, 'http://x')]);
const nameOf = (path: string): string => asked().find(([, asked]) => asked.pathname === path)?.[0] ?? `nothing asks for ${path}`;
const go = async (namespace: string): Promise<void> => {
  page.act(() => setView({ namespace }));
  await pass(300); // until it has rested
  await pass(10);
};
const job = (watch: string, name: string, namespace: string): string => frame(`${watch}.added`, 'e', { metadata: { uid: name, name, namespace }, spec: {}, status: {} });
const synced = (watch: string): string => frame(`${watch}.synced`, `e.${watch}-1`, { resourceVersion: '1', count: 1 });
const said = (): string => page.element.textContent ?? '';
/** How many rows there are: without a layout none is drawn. */
const rows = (): string | undefined => /All ([\d,]+)/.exec(said())?.[1];

test('no more of an object is asked for than is shown, and changes come as patches', async () => {
  await show();
  expect(asked().map(([, { pathname }]) => pathname).sort()).toEqual(['/api/v1/namespaces', '/apis/batch/v1/jobs']);
  for (const [, { searchParams }] of asked()) expect(searchParams.get('fields')).toMatch(/metadata\./);
  expect(asked().find(([, { pathname }]) => pathname.endsWith('jobs'))?.[1].searchParams.get('deltas')).toBe('merge-patch');
});

test('a namespace that is no name cannot reach another path', async () => {
  location.hash = '#jobs?ns=..%2F..%2Fsecrets%3Fx%3D';
  await show();
  expect(asked().map(([, { pathname }]) => pathname)).toContain('/apis/batch/v1/namespaces/..%2F..%2Fsecrets%3Fx%3D/jobs');
});

test('what may be seen of another namespace stays in sight, and the rest is gone at once', async () => {
  await show();
  const [all, names] = [nameOf('/apis/batch/v1/jobs'), nameOf('/api/v1/namespaces')];
  server.last.accept(job(all, 'a', 'team-a'), job(all, 'b', 'team-b'), synced(all), synced(names));
  await pass(10);
  expect(rows()).toBe('2');
  await go('team-a');
  expect(rows()).toBe('1');
  const one = nameOf('/apis/batch/v1/namespaces/team-a/jobs');
  server.last.accept(synced(one));
  await pass(10);
  expect(rows()).toBe('0'); // the gateway has the last word
});

test('the namespaces in which something may be seen are known while all are watched, and remembered while one is', async () => {
  const choices = (): string[] => [...page.element.querySelectorAll('select option')].map(({ textContent }) => textContent ?? '').slice(1);
  await show();
  const all = nameOf('/apis/batch/v1/jobs');
  const stream = server.last.accept(frame(`${all}.narrowed`, 'e', { namespaces: ['a', 'b'] }), synced(all));
  await pass(10);
  expect(choices()).toEqual(['a', 'b']);
  stream.push(frame(`${all}.narrowed`, 'e', { namespaces: ['a', 'b', 'c'] }));
  await pass(10);
  await go('a');
  expect(choices()).toEqual(['a', 'b', 'c']);
  server.last.accept(synced(nameOf('/apis/batch/v1/namespaces/a/jobs')));
  await pass(10);
  expect(choices()).toEqual(['a', 'b', 'c']);
});

test('who may not see the jobs is told so in words, and can try again; what else may be seen goes on', async () => {
  await show();
  const paths = asked().map(([, { pathname }]) => pathname);
  server.last.refuse(403, {}, JSON.stringify({ message: 'jobs is forbidden' }));
  await pass();
  for (const request of server.requests.slice(-paths.length)) {
    if (request.url.includes('/jobs')) request.refuse(403);
    else request.accept();
  }
  await pass(10);
  expect(said()).toContain('You may not see jobs of all namespaces');
  expect(asked().map(([, { pathname }]) => pathname)).toEqual(['/api/v1/namespaces']);
  page.act(() => page.button('Try again').click());
  await pass(10);
  expect(asked().map(([, { pathname }]) => pathname)).toContain('/apis/batch/v1/jobs');
});

test('an empty table says why: there is nothing, or no such namespace', async () => {
  location.hash = '#jobs?ns=gone';
  await show();
  const [jobs, names] = [nameOf('/apis/batch/v1/namespaces/gone/jobs'), nameOf('/api/v1/namespaces')];
  server.last.accept(synced(jobs), frame(`${names}.added`, 'e', { metadata: { uid: '1', name: 'there' } }), synced(names));
  await pass(10);
  expect(said()).toContain('There is no namespace gone');
  await go('there');
  server.last.accept(synced(nameOf('/apis/batch/v1/namespaces/there/jobs')));
  await pass(10);
  expect(said()).toContain('There are no jobs in there');
});

test('a column that cannot be sorted by says so', () => {
  page = render(<TableHeader columns={[{ id: 'name', header: 'Name' }, { id: 'restarts', header: 'Restarts', fixed: true }]} sort={{ column: 'name', descending: false }} onSort={() => undefined} />);
  expect([...page.element.querySelectorAll('[role=columnheader]')].map(({ textContent }) => textContent)).toEqual(['Name', 'Restarts, of so many, not to be sorted by']);
});

test('the first click sorts names from the first one, and restarts from the most', () => {
  const sorts: string[] = [];
  const shown = (column: string, descending: boolean) => (
    <TableHeader columns={[podColumns[0], podColumns.find(({ id }) => id === 'restarts')].filter((one) => one !== undefined)} sort={{ column, descending }} onSort={(sort) => sorts.push(`${sort.column} ${sort.descending ? 'down' : 'up'}`)} />
  );
  const press = (): void => page.act(() => page.element.querySelectorAll('button').forEach((button) => button.click()));
  page = render(shown('age', false));
  press();
  expect(sorts).toEqual(['name up', 'restarts down']);
  page.unmount();
  page = render(shown('restarts', true));
  press();
  expect(sorts.slice(2)).toEqual(['name up', 'restarts up']);
});

test('columns that the address does not name are left out, and the others stay where nothing else would tell them', async () => {
  location.hash = '#jobs?cols=age+nonsense';
  await show();
  const watch = nameOf('/apis/batch/v1/jobs');
  const other = nameOf('/api/v1/namespaces');
  server.last.accept(job(watch, 'a', 'n'), synced(watch), synced(other));
  await pass(100);
  const headers = (): (string | undefined)[] => [...page.element.querySelectorAll('[role=columnheader] button')].map((one) => one.textContent?.trim());
  expect([headers(), page.element.querySelector('.table-frame')?.hasAttribute('data-chosen')]).toEqual([['Name', 'Age'], true]);
  page.act(() => setView({ columns: '' }));
  expect([headers(), page.element.querySelector('.table-frame')?.hasAttribute('data-chosen')]).toEqual([['Name', 'State', 'Progress', 'Run time', 'Age', 'Namespace'], false]);
});
