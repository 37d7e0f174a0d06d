import { KubecastProvider } from '@kubecast/sdk/react';
import type { Kubecast } from '@kubecast/sdk';
import { act, useState, type ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { AsOf } from '../age/Age.tsx';
import { jobRow, type JobRow } from './job.ts';
import { WithPast } from './past.tsx';
import { RunTime, timesOf } from './RunTime.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

/** Its controller claims that it began a minute ago. */
const row = (uid: string, status: object = { active: 1, ready: 1 }): JobRow =>
  jobRow({ metadata: { uid, name: uid, namespace: 'n', creationTimestamp: ago(90_000) }, spec: {}, status: { startTime: ago(60_000), ...status } });

const show = async (first: readonly JobRow[]): Promise<(rows: readonly JobRow[]) => void> => {
  let setRows: (rows: readonly JobRow[]) => void = () => undefined;
  function Shown(): ReactNode {
    const [rows, set] = useState(first);
    setRows = set;
    return rows.map((one) => (
      <p key={one.uid} id={one.uid}>
        <RunTime row={one} />
      </p>
    ));
  }
  page = render(
    <KubecastProvider client={kc}>
      <AsOf value={Date.now()}>
        <WithPast namespace="n">
          <Shown />
        </WithPast>
      </AsOf>
    </KubecastProvider>,
  );
  await pass();
  return (rows) => page.act(() => setRows(rows));
};
const shown = (uid: string): string | null | undefined => page.element.querySelector(`#${uid}`)?.textContent;
const asked = (): string[] => server.requests.map(({ url }) => new URL(url, 'http://x').searchParams.get('uid') ?? '');
/** Jobs of which it was seen how long they waited, if nothing else is said. */
const answer = async (...items: object[]): Promise<void> => {
  server.last.refuse(200, {}, JSON.stringify({ items: items.map((item) => ({ waited: { seconds: 30, since: null }, ...item })) }));
  await pass();
};

test("a table's run times are the history's, which is asked for the jobs in sight at once", async () => {
  await show([row('a'), row('b'), row('c')]);
  expect(asked()).toEqual(['a,b,c']);
  expect(server.last.url).toContain('/history/apis/batch/v1/namespaces/n/jobs?');
  // It ran twice, and waited in between: its object knows of the second time alone.
  await answer({ uid: 'a', state: 'Running', ran: { seconds: 3_600, since: ago(60_000) } }, { uid: 'b', state: 'Failed', ran: null });
  expect([shown('a'), shown('b'), shown('c')]).toEqual(['61m', '–', '60s']); // nobody has recorded c
});

test('no run time is shown that the answer takes back: until it comes there is none', async () => {
  const become = await show([row('late'), row('waits', { startTime: undefined }), row('unknown')]);
  expect([shown('late'), shown('waits'), shown('unknown')]).toEqual(['…', '…', '…']);
  await answer({ uid: 'late', state: 'Running', waited: null, ran: { seconds: 0, since: ago(5_000) } });
  expect([shown('late'), shown('waits'), shown('unknown')]).toEqual(['≥ 5s', '–', '60s']);
  become([row('late'), row('new')]);
  expect([shown('late'), shown('new')]).toEqual(['≥ 5s', '…']);
});

test('where the history does not answer, the object is believed', async () => {
  await show([row('a')]);
  server.last.refuse(503, {}, '{}');
  await pass();
  expect(shown('a')).toBe('60s');
});

test('a job that has changed is asked for again, and ends in the table when its object says so', async () => {
  const become = await show([row('a')]);
  await answer({ uid: 'a', state: 'Running', ran: { seconds: 600, since: ago(60_000) } });
  become([row('a', { succeeded: 1, completionTime: ago(0), conditions: [{ type: 'Complete', status: 'True' }] })]);
  await pass();
  expect(shown('a')).toBe('11m');
  await pass(5_000);
  expect(asked()).toEqual(['a', 'a']);
  await answer({ uid: 'a', state: 'Succeeded', ran: { seconds: 720, since: null } });
  expect(shown('a')).toBe('12m');
});

test('who scrolls sees at once what was known, and jobs that are out of sight are not asked for', async () => {
  const become = await show([row('a')]);
  await answer({ uid: 'a', state: 'Running', ran: { seconds: 600, since: null } });
  become([row('b')]);
  await pass(5_000);
  expect(asked().at(-1)).toBe('b');
  await answer({ uid: 'b', state: 'Running', ran: { seconds: 6_000, since: null } });
  become([row('a')]);
  expect(shown('a')).toBe('10m');
});

test('where no history is kept it is asked for once, and the object is believed', async () => {
  const become = await show([row('a')]);
  server.last.refuse(404, {}, '{"detail":"no history is kept"}');
  await pass(1_500);
  become([row('a'), row('b'), row('waits', { startTime: undefined })]);
  await pass(60_000);
  expect(asked()).toHaveLength(1);
  expect([shown('b'), shown('waits')]).toEqual(['58s', '–']);
});

test('no more are asked for at once than the gateway takes', async () => {
  await show(Array.from({ length: 101 }, (_, n) => row(`j${n}`)));
  expect(asked().map((uids) => uids.split(',').length)).toEqual([100, 1]);
});

test('a job that has just begun runs at once, before the history has heard of it', async () => {
  await show([row('a')]);
  await answer({ uid: 'a', state: 'Pending', ran: null, waited: { seconds: 0, since: ago(90_000) } });
  expect(shown('a')).toBe('60s');
  await pass(11_000);
  await answer({ uid: 'a', state: 'Running', ran: { seconds: 5, since: null } });
  expect(shown('a')).toBe('5s');
});

test('of a job whose beginning nobody saw the least is told that it can have run', async () => {
  const become = await show([row('a'), row('b')]);
  await answer({ uid: 'a', state: 'Running', waited: null, ran: { seconds: 0, since: ago(5_000) } }, { uid: 'b', state: 'Running', ran: { seconds: 0, since: ago(5_000) } });
  expect([shown('a'), shown('b')]).toEqual(['≥ 5s', '5s']);
  become([row('a', { succeeded: 1, completionTime: ago(0), conditions: [{ type: 'Complete', status: 'True' }] })]);
  await pass();
  expect(shown('a')).toBe('≥ 5s');
});

test('what another run of the name did is none of its times', () => {
  page = render(null);
  expect(timesOf(row('a'), { uid: 'old', waited: undefined, ran: { over: 1, since: undefined } }).ran?.over).toBe(0);
});
