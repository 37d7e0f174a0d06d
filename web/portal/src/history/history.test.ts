import type { Kubecast, PastJob, Transition } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { render } from '../../../mock/render.ts';
import { causesAmong, columns, columnsFor, patched } from './HistoryPage.tsx';
import { outcomeOf } from './outcome.ts';
import { JobList } from './JobList.ts';
import { saidInFull, whyInRow, whyNow, whyOf } from '../state/why.ts';

/** A history whose newest job is the last one, told in pages of 100 as the gateway does. */
function history(names: number[]): Kubecast {
  const request = (path: string, _: RequestInit, read: (response: Response) => unknown): Promise<unknown> => {
    const query = new URL(path, 'http://x').searchParams;
    const before = Number(query.get('continue') ?? Infinity);
    const all = names.filter((name) => name < before).sort((a, b) => b - a);
    const items = all.slice(0, Number(query.get('limit'))).map((name) => ({ uid: String(name), name: String(name), state: 'Running', createdAt: new Date(name * 1_000).toISOString() }));
    return Promise.resolve(read(new Response(JSON.stringify({ items, continue: all.length > items.length ? String(items.at(-1)?.name) : '' }))));
  };
  return { request } as unknown as Kubecast;
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

test('whoever has leafed loses nothing that new jobs push from the first page, and sees no gap', async () => {
  const names = range(0, 250);
  const list = new JobList(history(names), {});
  expect((await list.newest()).items).toHaveLength(100);
  await list.older();
  names.push(...range(250, 300));
  const now = await list.newest();
  expect(now.items.map(({ name }) => Number(name))).toEqual(range(50, 300).reverse());
  expect(now.more).toBe(true);
  await list.older();
  const all = await list.newest();
  expect(all.items).toHaveLength(300);
  expect(all.more).toBe(false);
});

test('with so many new jobs that some were never read, the list begins anew rather than with a hole in it', async () => {
  const names = range(0, 150);
  const list = new JobList(history(names), {});
  await list.newest();
  names.push(...range(150, 400));
  const now = await list.newest();
  expect(now.items.map(({ name }) => Number(name))).toEqual(range(300, 400).reverse());
  await list.older();
  expect((await list.newest()).items.map(({ name }) => Number(name))).toEqual(range(200, 400).reverse());
});

test('a job that does not fit the question any more is not there any more, wherever it stood', async () => {
  const names = range(0, 150);
  const list = new JobList(history(names), {});
  await list.newest();
  await list.older();
  names.splice(names.indexOf(120), 1);
  expect((await list.newest()).items.map(({ name }) => Number(name))).not.toContain(120);
  names.splice(1);
  expect((await list.newest()).items.map(({ name }) => Number(name))).toEqual([0]);
});

test('older ones that come when the list has begun anew leave no hole in it', async () => {
  const names = range(0, 250);
  const list = new JobList(history(names), {});
  await list.newest();
  names.push(...range(250, 500));
  await Promise.all([list.newest(), list.older()]); // in this order
  await list.older();
  expect((await list.newest()).items.map(({ name }) => Number(name))).toEqual(range(300, 500).reverse());
});

test('a search goes on over pages on which nothing was found yet, and what it has found stays while the newest are looked at again', async () => {
  const asked: string[] = [];
  const pages: Record<string, { items: { uid: string; createdAt: string }[]; continue: string }> = {
    '': { items: [], continue: 'one' },
    one: { items: [], continue: 'two' },
    two: { items: [{ uid: 'u', createdAt: new Date(5_000).toISOString() }], continue: 'three' },
    three: { items: [], continue: '' },
  };
  const request = (path: string, _: RequestInit, read: (response: Response) => unknown): Promise<unknown> => {
    asked.push(new URL(path, 'http://x').searchParams.get('continue') ?? '');
    return Promise.resolve(read(new Response(JSON.stringify(pages[asked.at(-1) ?? '']))));
  };
  const list = new JobList({ request } as unknown as Kubecast, { search: 'b' });
  expect(await list.newest()).toEqual({ items: [], more: true });
  await list.older();
  expect(asked).toEqual(['', 'one', 'two']);
  expect(await list.newest()).toMatchObject({ items: [{ uid: 'u' }], more: true });
  await list.older();
  expect(await list.newest()).toMatchObject({ items: [{ uid: 'u' }], more: false });
});

const job = (state: string, since: number, durations: Record<string, number> = {}): PastJob => ({ uid: 'u', state, since, durations }) as unknown as PastJob;
const to = (state: string, at: number): Transition => ({ uid: 'u', to: state, at, reason: '', message: '', attempt: 1 }) as unknown as Transition;

test('a job on an older page is told as it is now, and never as it was before it was read', () => {
  expect(patched([job('Running', 10)], [to('Running', 10), to('Failed', 20)])[0]).toMatchObject({ state: 'Failed', since: 20 });
  expect(patched([job('Failed', 20)], [to('Running', 10)])[0]).toMatchObject({ state: 'Failed', since: 20 });
});

test('a job that is removed after its end keeps its outcome, also before it is read again', () => {
  const [removed] = patched([job('Succeeded', 20, { Running: 3 })], [to('Deleted', 30)]);
  expect(removed && outcomeOf(removed)).toBe('Succeeded');
});

test('a line says why in the words of the cause, else in those of the object, whatever these are', () => {
  const cause = { text: '<b>main was OOM-killed</b>', reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: 'p', node: 'n', pods: 1 };
  expect(whyOf({ cause, reason: 'BackoffLimitExceeded', message: 'm' })).toBe('<b>main was OOM-killed</b>');
  expect(whyOf({ reason: 'BackoffLimitExceeded', message: '' })).toBe('No retries left');
  const waits = { state: 'Queued', durations: {}, since: 10, cause, reason: 'Pending', message: 'no quota', reasons: [{ at: 5, reason: 'Pending', message: '' }] };
  expect(whyNow(waits)).toBe('<b>main was OOM-killed</b>');
  const unschedulable = { ...waits, state: 'Pending', cause: undefined, reason: 'Unschedulable', message: '0/3 nodes are available: 3 Insufficient cpu.' };
  const told = { at: 20, reason: unschedulable.reason, message: unschedulable.message, text: 'no node fits: too little cpu free (all 3)' };
  expect(whyNow({ ...unschedulable, reasons: [told] })).toBe('Unschedulable: no node fits: too little cpu free (all 3)');
  expect(saidInFull({ ...unschedulable, reasons: [told] })).toBe(unschedulable.message);
  // In a row of a table as well; of an end without a cause what its controller says at length is no part of it.
  expect(whyInRow({ ...unschedulable, reasons: [told] })).toBe('Unschedulable: no node fits: too little cpu free (all 3)');
  expect(whyInRow({ ...unschedulable, state: 'Failed', reason: 'BackoffLimitExceeded', reasons: [] })).toBe('No retries left');
  expect(whyNow({ ...unschedulable, reasons: [{ ...told, message: 'of before' }] })).toBe(`Unschedulable: ${unschedulable.message}`);
  expect(saidInFull({ ...unschedulable, reasons: [] })).toBe('');
  expect(whyNow({ ...waits, reasons: [{ at: 20, reason: 'Pending', message: 'no quota' }] })).toBe('Pending: no quota · <b>main was OOM-killed</b>');
});

test('what a pod failure policy ended says which container it was for, while its pods say nothing', () => {
  const message = 'Container main for pod n/p failed with exit code 42 matching FailJob rule at index 0';
  const said = `Ended by its pod failure policy: ${message}`;
  expect(whyOf({ reason: 'PodFailurePolicy', message })).toBe(said);
  const cause = { text: `PodFailurePolicy: ${message}`, reason: 'PodFailurePolicy', container: '', exitCode: null, signal: null, pod: '', node: '', pods: 0 };
  expect(whyOf({ cause, reason: 'PodFailurePolicy', message })).toBe(said);
});

test('a job that goes on says why it came to where it is now, and one that is removed why it had ended', () => {
  const cause = { text: 'main failed (exit 1)', reason: 'Error', container: 'main', exitCode: 1, signal: null, pod: 'p', node: 'n', pods: 1 };
  const job = { uid: 'a', state: 'Running', since: 1, durations: {} } as PastJob;
  const to = (state: string, at: number, more: Partial<Transition> = {}): Transition => ({
    seq: String(at), namespace: 'n', name: 'j', uid: 'a', from: undefined, to: state, at, late: false, attempt: 1, reason: '', message: '', owner: '', ...more,
  });
  const failed = patched([job], [to('Failed', 2, { cause })]);
  expect(failed[0]?.cause).toBe(cause);
  expect(patched(failed, [to('Deleted', 3)])[0]?.cause).toBe(cause);
  expect(patched(failed, [to('Running', 3)])[0]?.cause).toBeUndefined();
});

test('a cause that only the cluster has can be chosen as well, and one that is chosen stays to be seen', () => {
  const of = (reason: string): PastJob => ({ cause: { reason } }) as unknown as PastJob;
  const all = causesAmong([of('OOMKilled'), of('ConfigError'), of('ConfigError'), {} as PastJob], 'Gone');
  expect(all.filter(([value]) => value === 'OOMKilled')).toEqual([['OOMKilled', 'OOM-killed']]);
  expect(all.slice(-2)).toEqual([['ConfigError', 'ConfigError', 'foreign'], ['Gone', 'Gone', 'foreign']]);
  expect(causesAmong([], '').every(([, , foreign]) => !foreign)).toBe(true);
});

test('all that was told since a job was read counts for its times, not only the last of it', () => {
  const job = { uid: 'u', state: 'Pending', since: 1_000, createdAt: 1_000, durations: {}, waited: { over: 0, since: 1_000 }, ran: undefined } as unknown as PastJob;
  const to = (state: string, at: number): Transition => ({ uid: 'u', to: state, at, reason: '', message: '', attempt: 1, late: false }) as unknown as Transition;
  const told = [to('Pending', 1_000), to('Running', 4_000), to('Failed', 8_000)];
  const failed = patched([job], told);
  expect(failed[0]).toMatchObject({ state: 'Failed', startedAt: 4_000, waited: { over: 3_000 }, ran: { over: 4_000 }, durations: { Pending: 3, Running: 4 } });
  expect(patched(failed, told)).toEqual(failed); // read again, it has all of that
});

test('of a job that was found running the row says the least that it can have run', () => {
  const page = render(columns.find(({ id }) => id === 'ran')?.cell({ ...job('Failed', 1), waited: undefined, ran: { over: 3_000, since: undefined } }));
  expect(page.element.textContent).toBe('≥ 3s');
  page.unmount();
});

test('on a phone a row has what tells it apart below its name, unless columns were chosen', () => {
  const ids = (chosen: string): readonly string[] => columnsFor(columns, [], chosen, true).map(({ id }) => id);
  expect([ids(''), ids('owner')]).toEqual([['name', 'state'], ['name', 'owner']]);
});

test('a column that no job has anything of is left out, unless it was chosen', () => {
  const ids = (chosen: string, ...rows: PastJob[]): string => columnsFor(columns, rows, chosen).map(({ id }) => id).filter((id) => id === 'progress' || id === 'queue').join();
  const plain = { ...job('Failed', 1), queue: '', progress: { done: 0, of: 1 } };
  expect([ids('', plain), ids('', plain, { ...plain, queue: 'q' }), ids('', { ...plain, progress: { done: 1, of: 4 } }), ids('queue progress', plain)]).toEqual(['', 'queue', 'progress', 'progress,queue']);
});
