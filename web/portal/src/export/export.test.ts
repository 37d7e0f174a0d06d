import { parse as parseCsv } from 'csv-parse/sync';
import { expect, test, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createKubecast, defineResource, type Kubecast, type KubeObject } from '@kubecast/sdk';
import { jobs } from '../job/resources.ts';
import { exportedJobs } from '../jobs/exported.ts';
import { jobRow, type Job } from '../jobs/job.ts';
import { byteOrderMark, csvLine, type Cell } from './csv.ts';
import { csvFile, most, TooMany, yamlFile, type Exportable } from './save.ts';
import { ofHistory, ofKind, ofQuery, ofRows } from './table.ts';

const things = defineResource<KubeObject>()({ version: 'v1', plural: 'things' });
const { signal } = new AbortController();
const nothing = (): void => undefined;

function thing(n: number, more: object = {}): KubeObject {
  return { metadata: { uid: `u${n}`, name: `thing-${n}`, namespace: 'team', creationTimestamp: '2026-01-02T03:04:05Z', resourceVersion: String(n), managedFields: [{ manager: 'x' }] }, ...more } as KubeObject;
}

/** A gateway that gives pages of a list, and what was asked of it. */
function pages(all: readonly object[], size: number, rest: object = { apiVersion: 'v1', kind: 'ThingList' }): { kc: Kubecast; asked: URL[]; fail: (after: number) => void } {
  const asked: URL[] = [];
  let failAfter = Infinity;
  const kc = createKubecast({
    token: () => 't',
    fetch: (input) => {
      const url = new URL(input instanceof Request ? input.url : input, 'http://gateway');
      asked.push(url);
      if (asked.length > failAfter) return Promise.resolve(Response.json({ message: 'the token is too old' }, { status: 410 }));
      const from = Number(url.searchParams.get('continue') ?? 0);
      const next = from + size < all.length ? String(from + size) : '';
      return Promise.resolve(Response.json({ ...rest, metadata: { continue: next }, continue: next, items: all.slice(from, from + size) }));
    },
  });
  return { kc, asked, fail: (after) => (failAfter = after) };
}

const rowsOf = async (file: Blob): Promise<string[][]> => {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(await file.arrayBuffer());
  expect(text.startsWith(byteOrderMark)).toBe(true);
  return parseCsv(text, { bom: true });
};

/** As it is written: what might be a formula somewhere has an apostrophe in front. */
const defused = (cell: Cell): string =>
  String(cell)
    .split(/(?<=[;\t\r\n])/)
    .map((piece, n) => (n > 0 && /^[ "]*[=-]/.test(piece) ? `'${piece}` : piece))
    .join('');

test('whatever is in a cell, another reader finds the same text in it', () => {
  const pieces = ['a', '"', ',', '\n', '\r\n', ' ', '作业', '=', '-', "'", ';', '\t'];
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 2_000; round++) {
    const cells: Cell[] = Array.from({ length: 1 + random(4) }, () => (random(5) === 0 ? random(100) - 50 : `x${Array.from({ length: random(6) }, () => pieces[random(pieces.length)]).join('')}`));
    expect(parseCsv(csvLine(cells))).toEqual([cells.map(defused)]);
  }
  expect(csvLine(['a', undefined, 0])).toBe('a,,0\r\n');
});

test('no cell is a formula for a spreadsheet', () => {
  for (const text of ['=HYPERLINK("http://evil")', '+1', '-1+cmd', '@SUM(A1)', '＝1', '  =1', '"=1', '\u00a0@x', '\u200b=1']) {
    expect(parseCsv(csvLine([text]))).toEqual([[`'${text}`]]);
  }
  expect(csvLine(["'=1", 'a=1', 'a; b', '-'])).toBe(`'=1,a=1,"a; b",'-\r\n`);
  expect(csvLine([-5])).toBe('-5\r\n'); // a number is none
});

// Where the list separator is a semicolon (German, French, Spanish … Windows), a spreadsheet that opens the file divides its lines
// there, and quotes count only at the beginning of a cell. Tabs do the same to text that is pasted.
test.each([',', ';', '\t', '|'])('no cell is a formula for a spreadsheet that divides by %j', (delimiter) => {
  for (const evil of ['=HYPERLINK("http://evil","open")', "=cmd|' /C calc'!A0", '+1', '-1', '@SUM(A1)', '＝1', ' "=1']) {
    for (const before of ['', 'x"']) {
      for (const separator of [';', '\t', '\n', '\r\n', ';\t']) {
        const line = csvLine(['train', `${before}${separator}${evil};y`, evil]);
        const rows: string[][] = parseCsv(byteOrderMark + line, { bom: true, delimiter, relax_quotes: true, relax_column_count: true });
        expect(rows.flat().filter((cell) => /^[\s"]*[=+\-@＝＠]/.test(cell)), line).toEqual([]);
      }
    }
  }
});

test('a table of many is read page by page, as the page asks for it, whole', async () => {
  const { kc, asked } = pages(Array.from({ length: 12 }, (_, n) => thing(n)), 5);
  const of = ofQuery(kc, things, { namespace: 'team', search: 'thi', where: 'a=b', fields: ['x'] }, ['-metadata.name'], (o) => o.metadata, { header: ['Name'], line: ({ name }) => [name] });
  expect(of.file).toBe('things-team');
  const counts: number[] = [];
  expect((await rowsOf(await csvFile(of, signal, (n) => counts.push(n)))).flat()).toEqual(['Name', ...Array.from({ length: 12 }, (_, n) => `thing-${n}`)]);
  expect(counts.at(-1)).toBe(12);
  expect(asked.map(({ searchParams }) => searchParams.get('continue'))).toEqual([null, '5', '10']);
  for (const { pathname, searchParams } of asked) {
    expect([pathname, searchParams.get('search'), searchParams.get('fieldSelector'), searchParams.get('sort'), searchParams.get('fields')]).toEqual(['/api/v1/namespaces/team/things', 'thi', 'a=b', '-metadata.name', 'x']);
  }
});

test('objects are documents that Kubernetes reads as they were, of their kind and without what is of no use', async () => {
  const data = { on: 'yes', octal: '012', date: '2026-01-02', text: 'a\nb: c\n', empty: '', colon: '12:30:45', same: ['x'], nothing: '~', big: '1e3' };
  const shared = { key: 'twice' };
  const { kc } = pages([thing(1, { data }), thing(2, { a: shared, b: shared })], 1);
  const of = ofQuery(kc, things, {}, [], (o) => o, { header: [], line: () => [] });
  const text = await (await yamlFile(of.yaml ?? fail(), signal, nothing)).text();
  // YAML 1.1, as Kubernetes has it.
  const documents = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as Record<string, unknown>);
  expect(documents).toHaveLength(2);
  expect(documents[0]).toMatchObject({ apiVersion: 'v1', kind: 'Thing', data, metadata: { name: 'thing-1', creationTimestamp: '2026-01-02T03:04:05Z' } });
  expect(text).not.toContain('managedFields');
  expect(text).not.toContain('&a');
});

test('numbers that JavaScript has none for are in the file as they are', async () => {
  const list = '{"apiVersion":"v1","kind":"ThingList","items":[{"metadata":{"uid":"u","name":"a"},"spec":{"serial":9007199254740993}}]}';
  const kc = createKubecast({ token: () => 't', fetch: () => Promise.resolve(new Response(list)) });
  const of = ofQuery(kc, things, {}, [], (o) => o, { header: [], line: () => [] });
  expect(await (await yamlFile(of.yaml ?? fail(), signal, nothing)).text()).toContain('serial: 9007199254740993\n');
  const table = '{"columnDefinitions":[{"name":"Serial","type":"integer"}],"rows":[{"cells":[9007199254740993],"object":{"metadata":{"name":"a","uid":"u"}}}]}';
  const tables = createKubecast({ token: () => 't', fetch: () => Promise.resolve(new Response(table)) });
  expect((await rowsOf(await csvFile(ofKind(tables, things, false, {}), signal, nothing)))[1]?.[1]).toBe('9007199254740993');
});

test('what the page has is taken in its order, and its objects are those of its rows', async () => {
  const { kc, asked } = pages(Array.from({ length: 6 }, (_, n) => thing(n)), 4);
  const of = ofRows(kc, things, 'team', () => [{ uid: 'u4', name: 'd' }, { uid: 'u1', name: 'a' }], { header: ['Name'], line: ({ name }) => [name] });
  expect((await rowsOf(await csvFile(of, signal, nothing))).flat()).toEqual(['Name', 'd', 'a']);
  expect(asked).toHaveLength(0);
  const text = await (await yamlFile(of.yaml ?? fail(), signal, nothing)).text();
  expect(parseAllDocuments(text).map((document) => (document.toJS() as KubeObject).metadata.uid)).toEqual(['u1', 'u4']);
});

test("a kind's own columns, and the jobs of a history, to the last page", async () => {
  const table = {
    columnDefinitions: [{ name: 'Name', type: 'string', format: 'name' }, { name: 'Size', type: 'integer' }],
    rows: [{ cells: ['w', 3], object: { metadata: { uid: 'u', name: 'w', namespace: 'n', creationTimestamp: '2026-01-01T00:00:00Z' } } }],
  };
  const kind = ofKind(pages([{}, {}], 1, table).kc, things, true, { search: 'w' });
  const [header, ...lines] = await rowsOf(await csvFile(kind, signal, nothing));
  expect(header).toEqual(['Name', 'Namespace', 'Size', 'Created']);
  expect(lines).toEqual([['w', 'n', '3', '2026-01-01T00:00:00Z'], ['w', 'n', '3', '2026-01-01T00:00:00Z']]);

  const past = (n: number): object => ({ uid: `u${n}`, name: `job-${n}`, namespace: 'n', state: 'Failed', reason: '=1', since: '2026-01-01T00:00:09Z', createdAt: '2026-01-01T00:00:00Z', durations: { Running: 4 }, attempt: 2, ...(n === 1 && { hours: { cpu: 0.5, memory: 2, gpu: 1 }, podFailures: 3, preemptions: 0, cause: { text: '=main failed', reason: 'Error' } }) });
  const { kc, asked } = pages([past(1), past(2), past(3)], 2);
  const history = await rowsOf(await csvFile(ofHistory([{ kc }], { owner: 'me' }), signal, nothing));
  expect(history.slice(1).map(([name, , state, reason]) => [name, state, reason])).toEqual([1, 2, 3].map((n) => [`job-${n}`, 'Failed', "'=1"]));
  const at = (line: number, ...columns: string[]): (string | undefined)[] => columns.map((one) => history[line]?.[history[0]?.indexOf(one) ?? -1]);
  const columns = ['Attempt', 'CPU hours', 'GiB hours', 'GPU hours', 'Pods failed', 'Preemptions', 'Cause'];
  expect(at(1, ...columns)).toEqual(['2', '0.5', '2', '1', '3', '0', "'=main failed"]);
  expect(at(2, ...columns)).toEqual(['2', '', '', '', '', '', '']); // what is not known is not 0
  expect(asked.map(({ searchParams }) => [searchParams.get('owner'), searchParams.get('continue')])).toEqual([['me', null], ['me', '2']]);
});

test.each([['what the page has', ofRows], ['a table of many', undefined]])('a file of jobs (%s) says why each failed and how long it ran, as the table does, and not what its controller claims', async (_, rowsAtHand) => {
  const job = (n: number, status: object): object => ({ metadata: { uid: `u${n}`, name: `job-${n}`, namespace: 'n', creationTimestamp: '2026-01-01T00:00:00Z' }, spec: { completions: 1 }, status });
  const startTime = '2026-01-01T00:00:00Z';
  const failed = { startTime, failed: 1, conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', lastTransitionTime: '2026-01-01T00:01:00Z' }] };
  const all = [job(0, failed), job(1, failed), job(2, { startTime, active: 1, ready: 0 }), ...Array.from({ length: 100 }, (__, n) => job(n + 3, failed))];
  const past = (uid: string): object => ({ uid, name: 'x', namespace: 'n', state: 'Failed', startedAt: '2026-01-01T00:00:50Z', waited: uid === 'u0' ? null : { seconds: 50 }, ran: { seconds: 10 }, durations: {}, cause: { text: 'main was OOM-killed', reason: 'OOMKilled' } });
  const asked: number[] = [];
  let history = true;
  const kc = createKubecast({
    token: () => 't',
    fetch: (input) => {
      const url = new URL(input instanceof Request ? input.url : input, 'http://gateway');
      if (!url.pathname.startsWith('/history')) return Promise.resolve(Response.json({ kind: 'JobList', metadata: {}, items: all }));
      const uids = url.searchParams.get('uid')?.split(',') ?? [];
      asked.push(uids.length);
      return Promise.resolve(history ? Response.json({ items: uids.filter((uid) => uid !== 'u1' && uid !== 'u2').map(past), continue: '' }) : Response.json({ status: 404, detail: 'no history is kept' }, { status: 404 }));
    },
  });
  const rows = all.map((one) => jobRow(one as Job));
  const file = rowsAtHand ? rowsAtHand(kc, jobs, '', () => rows, exportedJobs) : ofQuery(kc, jobs, {}, [], jobRow, exportedJobs);
  const cells = async (...columns: string[]): Promise<(string | undefined)[][]> => {
    const [header = [], ...lines] = await rowsOf(await csvFile(file, signal, nothing));
    expect(lines).toHaveLength(103);
    return [0, 1, 2, 102].map((n) => columns.map((one) => lines[n]?.[header.indexOf(one)]));
  };
  const known = ['OOM', '2026-01-01T00:00:50.000Z', '10', ''];
  const late = [...known.slice(0, 3), 'yes']; // nobody saw it begin
  const claims = ['', '2026-01-01T00:00:00.000Z', '60', ''];
  const waits = ['', '', '', ''];
  const seen = async (): Promise<unknown> => (await cells('Cause', 'Started', 'Ran (seconds)', 'Ran longer')).map(([cause = '', ...rest]) => [cause.includes('OOM') ? 'OOM' : cause, ...rest]);
  expect(await seen()).toEqual([late, claims, waits, known]);
  expect(asked).toEqual([100, 3]);
  history = false;
  expect(await seen()).toEqual([claims, claims, waits, claims]);
  expect(asked).toEqual([100, 3, 100]); // and not again
});

test('what a search of the history finds behind a page on which it has found nothing yet is in the file', async () => {
  const request = (path: string, _: RequestInit, read: (response: Response) => unknown): Promise<unknown> =>
    Promise.resolve(read(new Response(JSON.stringify(path.includes('continue=') ? { items: [{ uid: 'u', name: 'b' }], continue: '' } : { items: [], continue: 'on' }))));
  const [, ...lines] = await rowsOf(await csvFile(ofHistory([{ kc: { request } as unknown as Kubecast }], { search: 'b' }), signal, nothing));
  expect(lines.map(([name]) => name)).toEqual(['b']);
});

test('a list that breaks off gives no file, and who cancels is asked nothing more for', async () => {
  const { kc, asked, fail: failAfter } = pages(Array.from({ length: 9 }, (_, n) => thing(n)), 3);
  const of = ofQuery(kc, things, {}, [], (o) => o, { header: [], line: () => [] });
  failAfter(2);
  await expect(csvFile(of, signal, nothing)).rejects.toThrow('the token is too old');
  const control = new AbortController();
  failAfter(Infinity);
  asked.length = 0;
  const taken = csvFile(of, control.signal, nothing);
  control.abort();
  await expect(taken).rejects.toThrow();
  expect(asked.length).toBeLessThan(2);
});

test('more than a browser has memory for is said, and not cut off', async () => {
  const many = (n: number): Exportable => ({
    file: 'f',
    csv: async function* () {
      await Promise.resolve();
      yield ['Name'];
      for (let i = 0; i < n; i++) yield ['a'];
    },
  });
  vi.stubGlobal('setTimeout', (go: () => void) => queueMicrotask(go));
  await expect(csvFile(many(most.csv + 1), signal, nothing)).rejects.toThrow(TooMany);
  expect((await csvFile(many(most.csv), signal, nothing)).size).toBe('\uFEFF'.length + 2 + 'Name\r\n'.length + most.csv * 'a\r\n'.length);
  vi.unstubAllGlobals();
});

function fail(): never {
  throw new Error('nothing is offered');
}
