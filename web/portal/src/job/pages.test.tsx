import type { Kubecast, KubeObject, PastJob, Run } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act, useState, type ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { podRow, type PodRow } from '../pods/pod.ts';
import { AnyPage } from '../object/AnyPage.tsx';
import { NodePage } from '../object/NodePage.tsx';
import { PodPage } from '../object/PodPage.tsx';
import { formatDate } from '../texts/format.ts';
import { parseView, useView } from '../view/view.ts';
import { JobPage } from './JobPage.tsx';
import { KeptLog, KeptLogs, KeptSpec, lostPods, usePastJob } from './Kept.tsx';
import { LogView } from '../log/LogView.tsx';
import { jobs } from './resources.ts';
import { Yaml } from './Yaml.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const show = async (hash: string): Promise<void> => {
  const view = parseView(hash);
  if (!view.object) throw new Error(`${hash} is no job's page`);
  page = render(
    <KubecastProvider client={kc}>
      <JobPage view={view} {...view.object} token={undefined} />
    </KubecastProvider>,
  );
  await pass();
};
const nameOf = (path: string): string => [...new URL(server.last.url, 'http://x').searchParams].find(([, value]) => value.startsWith(path))?.[0] ?? '';

test('it is not said that there is no such object before that is known', async () => {
  await show('#jobs/n/j?tab=yaml');
  expect(page.element.textContent).not.toContain('There is no such object');
  const jobs = nameOf('/apis/batch/v1/');
  server.last.accept(frame(`${jobs}.synced`, `e.${jobs}-7`, { resourceVersion: '7', count: 0 }));
  await pass(100);
  expect(page.element.textContent).toContain('There is no such object');
});

test('it is not said that a job has no pods before that is known', async () => {
  await show('#jobs/n/j');
  const tab = (): string | undefined => [...page.element.querySelectorAll('[role=tab]')].map(({ textContent }) => textContent.trim()).find((text) => text.startsWith('Pods'));
  expect(tab()).toBe('Pods');
  const watched = [...new URL(server.last.url, 'http://x').searchParams.keys()].filter((name) => /^w\d+$/.test(name));
  server.last.accept(...watched.map((name, n) => frame(`${name}.synced`, `e.${watched.slice(0, n + 1).map((one) => `${one}-7`).join('.')}`, { resourceVersion: '7', seq: '7', count: 0 })));
  await pass(100);
  expect(tab()).toBe('Pods 0');
});

test('no command is offered for what can be no name: a shell would take it for more', async () => {
  await show('#jobs/n/j');
  expect(page.element.textContent).toContain('kubectl -n n describe job j');
  page.unmount();
  await show('#jobs/n/j%0Atouch%20x');
  expect(page.element.textContent).not.toContain('kubectl');
});

test('of a run that is gone no command is offered: kubectl would describe the one that has its name', async () => {
  for (const [has, offered] of [['old', true], ['new', false]] as const) {
    await show('#jobs/n/j@old');
    expect(page.element.textContent).not.toContain('kubectl'); // it is not known yet
    const stream = server.requests.findLast(({ url }) => url.startsWith('/stream'));
    const [jobs = ''] = [...new URL(stream?.url ?? '', 'http://x').searchParams].find(([, path]) => path.startsWith('/apis/batch/v1/')) ?? [];
    stream?.accept(frame(`${jobs}.added`, `e.${jobs}-6`, { metadata: { name: 'j', namespace: 'n', uid: has } }), frame(`${jobs}.synced`, `e.${jobs}-7`, { resourceVersion: '7', count: 1 }));
    await pass(100);
    expect([has, page.element.textContent.includes('kubectl -n n describe job j')]).toEqual([has, offered]);
    if (offered) {
      page.unmount();
      await pass(60_000);
    }
  }
});

test('tabs are tabs: one is in the order of the tab key, arrow keys go round, and each names what it shows', async () => {
  location.hash = '#jobs/n/j';
  function Page(): ReactNode {
    return <JobPage view={useView()} namespace="n" name="j" token={undefined} />;
  }
  page = render(
    <KubecastProvider client={kc}>
      <Page />
    </KubecastProvider>,
  );
  await pass();
  const tabs = [...page.element.querySelectorAll<HTMLElement>('[role="tablist"] [role="tab"]')];
  const chosen = (): (string | undefined)[] => tabs.filter((one) => one.getAttribute('aria-selected') === 'true' && one.tabIndex === 0).map(({ textContent }) => textContent?.trim());
  expect(tabs.filter(({ tabIndex }) => tabIndex === 0)).toHaveLength(1);
  expect(chosen()).toEqual(['Logs']);
  tabs[0]?.focus();
  const press = (key: string): void => act(() => void document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })));
  press('ArrowLeft');
  expect([chosen(), document.activeElement]).toEqual([['YAML'], tabs.at(-1)]);
  expect(location.hash).toBe('#jobs/n/j?tab=yaml');
  const panel = page.element.querySelector('[role="tabpanel"]');
  expect([panel?.getAttribute('aria-labelledby'), panel?.id]).toEqual([tabs.at(-1)?.id, tabs.at(-1)?.getAttribute('aria-controls')]);
  press('ArrowRight');
  expect([chosen(), location.hash]).toEqual([['Logs'], '#jobs/n/j']);
});

test('numbers that a stream does not tell as they are are read again for the YAML', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Yaml object={{ metadata: { name: 'j', namespace: 'n', uid: 'u' }, spec: { serial: 9007199254740993 } } as unknown as KubeObject} status="live" of={jobs} />
    </KubecastProvider>,
  );
  await pass();
  expect(server.last.url).toBe('/apis/batch/v1/namespaces/n/jobs/j');
  server.last.refuse(200, {}, '{"metadata":{"name":"j","namespace":"n","uid":"u"},"spec":{"serial":9007199254740993}}');
  await vi.waitFor(async () => {
    await pass();
    expect(page.element.textContent).toContain('serial: 9007199254740993');
  }, { timeout: 60_000 });
});

test('the YAML is taken along as it is shown: copied, or as a file', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Yaml object={{ metadata: { name: 'j', namespace: 'team', uid: 'u' }, spec: { a: 1 } } as unknown as KubeObject} status="live" />
    </KubecastProvider>,
  );
  await vi.waitFor(async () => {
    await pass();
    expect(page.element.textContent).toContain('Download');
  }, { timeout: 60_000 });
  const yaml = 'metadata:\n  name: j\n  namespace: team\n  uid: u\nspec:\n  a: 1\n';
  const copied = vi.spyOn(navigator.clipboard, 'writeText').mockResolvedValue();
  page.act(() => page.button('Copy').click());
  expect(copied).toHaveBeenCalledWith(yaml);
  let blob: Blob | undefined;
  const url = vi.spyOn(URL, 'createObjectURL').mockImplementation((made) => ((blob = made as Blob), 'blob:x'));
  let file = '';
  const click = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    file = this.download;
  });
  page.act(() => page.button('Download').click());
  await vi.waitFor(() => expect(file).toBe('team-j.yaml'), { timeout: 30_000 });
  expect(await blob?.text()).toBe(yaml);
  for (const one of [copied, url, click]) one.mockRestore();
});

test('Events of an object are those of its uid, once that is known: a name is used again', async () => {
  const kind = { id: 'things.example.org', group: 'example.org', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true, shortNames: [] };
  page = render(
    <KubecastProvider client={kc}>
      <AnyPage view={parseView('#kinds/things.example.org/n/a,b')} kind={kind} namespace="n" name="a,b" />
    </KubecastProvider>,
  );
  await pass();
  const asked = (): string[] => server.requests.map(({ url }) => decodeURIComponent(decodeURIComponent(url))).filter((url) => url.includes('involvedObject.') && url.includes('fieldSelector'));
  expect(asked()).toEqual([]);
  const stream = server.requests.findLast(({ url }) => url.startsWith('/stream'));
  stream?.accept(frame('w0.added', 'e', { metadata: { name: 'a,b', namespace: 'n', uid: 'u-1' } }), frame('w0.synced', 'e.w0-7', { resourceVersion: '7', count: 1 }));
  await pass(100);
  await pass(100);
  expect(asked().at(-1) ?? '').toContain('involvedObject.uid=u-1');
});

const pod = (name: string, phase: PodRow['phase']): PodRow => ({
  uid: name, name, namespace: 'n', owner: '', job: 'j', node: '', state: phase, phase, detail: '', message: '', ready: 0, containers: 5, logs: 5, restarts: 0, created: 0,
});

test('of many pods the log that is shown stays, whatever becomes of the pods, while its pod is there', () => {
  let setPods: (pods: readonly PodRow[]) => void = () => undefined;
  function Page(): ReactNode {
    const [pods, set] = useState<readonly PodRow[]>([pod('a', 'Running'), pod('b', 'Running')]);
    setPods = set;
    return (
      <KubecastProvider client={kc}>
        <LogView namespace="n" name="j" pods={pods} token={undefined} />
      </KubecastProvider>
    );
  }
  page = render(<Page />);
  const shown = (): string | undefined => page.element.querySelector('select')?.value;
  expect(shown()).toBe('a');
  page.act(() => setPods([pod('a', 'Running'), pod('b', 'Failed')]));
  expect(shown()).toBe('a');
  page.act(() => setPods([pod('a', 'Succeeded'), pod('b', 'Running')]));
  expect(shown()).toBe('a');
  page.act(() => setPods([pod('b', 'Running'), pod('c', 'Running')]));
  expect(shown()).toBe('b');
});

test('a link to a line opens the log of its pod, and another pod has nothing of it', () => {
  location.hash = '#jobs/n/j?line=b%2Fmain%2F2026-01-31T09%3A00%3A00Z';
  page = render(
    <KubecastProvider client={kc}>
      <LogView namespace="n" name="j" pods={[pod('a', 'Running'), pod('b', 'Running')]} token={undefined} />
    </KubecastProvider>,
  );
  const select = page.element.querySelector<HTMLSelectElement>('select[aria-label=Pod]');
  expect(select?.value).toBe('b');
  page.act(() => {
    if (select) select.value = 'a';
    select?.dispatchEvent(new Event('change', { bubbles: true }));
  });
  expect(select?.value).toBe('a');
  expect(location.hash).toBe('#jobs/n/j');
});

test('containers that only begin a pod count among those whose logs are followed: the gateway counts them as well', () => {
  const rows = ['a', 'b', 'c'].map((name) =>
    podRow({
      metadata: { name, namespace: 'n', uid: name },
      spec: { containers: [{ name: 'main' }] },
      status: { phase: 'Running', initContainerStatuses: ['fetch', 'check'].map((one) => ({ name: one, state: {} })) },
    }),
  );
  page = render(
    <KubecastProvider client={kc}>
      <LogView namespace="n" name="j" pods={rows} token={undefined} />
    </KubecastProvider>,
  );
  expect(page.element.querySelector('select[aria-label=Pod]')).not.toBeNull();
});

const gone = { of: jobs, namespace: 'n', name: 'j', uid: 'u' };
const shows = async (node: ReactNode, status: number, body: string): Promise<string> => {
  page = render(<KubecastProvider client={kc}>{node}</KubecastProvider>);
  await pass();
  server.last.refuse(status, {}, body);
  await pass(100);
  return page.element.textContent;
};

/** A document without a layout has no sizes. */
const sized = (): void => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(800);
};
afterEach(() => vi.restoreAllMocks());
const linesShown = (): string[] => [...page.element.querySelectorAll('.log-text')].map(({ textContent }) => textContent);

test('what is kept of a job that is gone is shown as it was written, and is no markup', async () => {
  sized();
  await shows(<KeptLog {...gone} />, 200, '<img src=x onerror=alert(1)>\nloss is nan\n');
  expect(linesShown()).toEqual(['<img src=x onerror=alert(1)>', 'loss is nan']);
  expect(page.element.querySelector('img')).toBeNull();
  expect(server.last.url).toBe('/history/apis/batch/v1/namespaces/n/jobs/j?uid=u&view=log');
  page.unmount();
  await shows(<KeptSpec {...gone} />, 200, '{"kind":"Job","metadata":{"name":"j","uid":"u"},"spec":{"parallelism":7,"serial":9007199254740993}}');
  await vi.waitFor(() => expect(page.element.textContent).toContain('parallelism: 7'), { timeout: 60_000 });
  expect(page.element.textContent).toContain('serial: 9007199254740993');
  expect(server.last.url).toBe('/history/apis/batch/v1/namespaces/n/jobs/j?uid=u&view=spec');
});

test('what a pod wrote that was preempted is shown by its name, beside what goes on', async () => {
  sized();
  const run = { seq: '1', namespace: 'n', job: { resource: 'jobs.batch', name: 'j', uid: 'u' }, index: '', node: '', createdAt: 1, scheduledAt: 1, startedAt: 1, endedAt: 2, late: false, restarts: 0, message: '', container: '', exitCode: undefined, signal: undefined, requests: {} };
  const past = { pods: [{ ...run, name: 'j-2', uid: 'p2', reason: '' }, { ...run, name: 'j-1', uid: 'p1', reason: 'Preempted', log: true }, { ...run, name: 'j-0', uid: 'p0', reason: 'Error', log: true }] } as unknown as PastJob;
  const lost = lostPods(past, [{ uid: 'p2' }, { uid: 'p0' }]);
  expect(lost.map(({ name }) => name)).toEqual(['j-1']);
  page = render(
    <KubecastProvider client={kc}>
      <KeptLogs {...gone} first={{ title: 'now', content: <p>goes on</p> }} pods={lost} />
    </KubecastProvider>,
  );
  await pass();
  expect(page.element.textContent).toContain('goes on');
  const choice = page.element.querySelector('select');
  if (!choice) throw new Error('nothing can be chosen');
  expect([...choice.options].map(({ textContent }) => textContent)).toEqual(['now', 'j-1 (Preempted)']);
  act(() => {
    choice.value = 'p1';
    choice.dispatchEvent(new Event('change', { bubbles: true }));
  });
  await pass();
  expect(server.last.url).toBe('/history/apis/batch/v1/namespaces/n/jobs/j?uid=u&view=log&pod=p1');
  server.last.refuse(200, {}, 'step 1\nsaved\n');
  await pass(100);
  expect(linesShown()).toEqual(['step 1', 'saved']);
  expect(page.element.textContent).toContain('The end of the log of j-1');
});

test('pods of one name are told apart by when they ended', () => {
  const at = (hour: number): number => new Date(2026, 0, 2, hour, 30).getTime();
  const run = { name: 'worker-0', reason: 'Preempted', log: true, createdAt: at(1) };
  const pods = [{ ...run, uid: 'p3', endedAt: at(7) }, { ...run, uid: 'p2', endedAt: at(4) }, { ...run, uid: 'p1', name: 'worker-1' }] as unknown as readonly Run[];
  page = render(
    <KubecastProvider client={kc}>
      <KeptLogs {...gone} first={{ title: 'now', content: '' }} pods={pods} />
    </KubecastProvider>,
  );
  const [now, ...named] = [...page.element.querySelectorAll('option')].map(({ textContent }) => textContent);
  expect(now).toBe('now');
  expect(named).toEqual([`worker-0 (Preempted), ${formatDate(at(7))}`, `worker-0 (Preempted), ${formatDate(at(4))}`, 'worker-1 (Preempted)']);
  expect(new Set(named).size).toBe(3);
});

test('the end of a log that is kept opens at its end, is searched, and is saved as it was written', async () => {
  sized();
  const text = Array.from({ length: 2_000 }, (_, n) => (n % 500 === 7 ? `ERROR ${n}\n` : `step ${n}\n`)).join('');
  const scrolled = vi.spyOn(Element.prototype, 'scrollTop', 'set');
  vi.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(36_000);
  await shows(<KeptLog {...gone} />, 200, text);
  expect(scrolled).toHaveBeenCalledWith(36_000);
  const input = page.element.querySelector<HTMLInputElement>('input[type=search]');
  if (!input) throw new Error('nothing can be searched for');
  page.type(input, 'error');
  await pass(100);
  const named = (label: string): HTMLButtonElement | null => page.element.querySelector(`button[aria-label="${label}"]`);
  const count = (): string => page.element.querySelector('.log-count')?.textContent ?? '';
  expect(count()).toBe('– of 4');
  page.act(() => named('Previous match')?.click());
  expect(count()).toBe('4 of 4');
  page.act(() => named('Next match')?.click());
  expect(count()).toBe('1 of 4');
  let blob: Blob | undefined;
  vi.spyOn(URL, 'createObjectURL').mockImplementation((made) => ((blob = made as Blob), 'blob:x'));
  const clicked = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  page.act(() => page.button('Download').click());
  expect([(clicked.mock.instances[0] as HTMLAnchorElement).download, await blob?.text()]).toEqual(['n-j.log', text]);
  expect(page.button('Wrap').getAttribute('aria-pressed')).toBe('false');
});

test('why nothing is shown of what is kept is said', async () => {
  expect(await shows(<KeptLog {...gone} />, 403, '{"detail":"pods/log is forbidden"}')).toContain('pods/log is forbidden');
  page.unmount();
  // A spec is no log.
  expect(await shows(<KeptSpec {...gone} />, 403, '{"detail":"jobs is forbidden"}')).toMatch(/It cannot be shown\. jobs is forbidden$/);
  page.unmount();
  expect(await shows(<KeptLog {...gone} />, 404, '{}')).toContain('not kept any more');
});

test('of jobs that had one name, that with the uid is asked for, however many came after it', async () => {
  function Page(): ReactNode {
    return usePastJob(jobs, 'n', 'j', 'u/1', 'seq').data?.state;
  }
  expect(await shows(<Page />, 200, '{"items":[{"uid":"u/1","state":"Failed"}]}')).toBe('Failed');
  expect(server.requests.map(({ url }) => url)).toEqual(['/history/apis/batch/v1/namespaces/n/jobs/j?uid=u%2F1']);
});

/** Answers whatever is asked for, until nothing more is, and tells what logs are followed meanwhile. */
const answerAll = async (has: (path: string) => readonly object[] | 'loading' | 'denied'): Promise<string[]> => {
  const answered = new Set<unknown>();
  const followed = new Set<string>();
  for (let round = 0; round < 12; round++) {
    for (const request of server.requests.filter((one) => !answered.has(one))) {
      answered.add(request);
      const watches = [...new URL(request.url, 'http://x').searchParams].filter(([name]) => /^w\d/.test(name));
      for (const [, path] of watches) if (path.startsWith('/logs/')) followed.add(path.split('?')[0] ?? '');
      const path = watches.length > 0 ? '' : request.url;
      const given = has(path);
      if (path) request.refuse(given === 'denied' ? 403 : 200, {}, JSON.stringify({ items: typeof given === 'string' ? [] : given }));
      else if (watches.some(([, one]) => has(one) === 'denied')) request.refuse(403, {}, '{}');
      else {
        const ids: string[] = [];
        const frames = watches.flatMap(([name, one]) => {
          const objects = has(one);
          if (typeof objects === 'string') return [];
          const id = (): string => `e.${[...ids, `${name}-1`].join('.')}`;
          const told = objects.map((object) => frame(`${name}.added`, ids.length > 0 ? `e.${ids.join('.')}` : 'e', object));
          const synced = frame(`${name}.synced`, id(), { resourceVersion: '1', seq: '1', count: objects.length });
          ids.push(`${name}-1`);
          return [...told, synced];
        });
        request.accept('retry: 100000\n\n', ...frames);
      }
    }
    await pass(300);
  }
  return [...followed];
};

const runOf = (uid: string): object => ({ metadata: { name: 'train', namespace: 'n', uid }, spec: {}, status: { active: 1, ready: 1 } });
const podOf = (name: string, labels: Record<string, string>, ownerReferences: readonly object[] = []): object => ({
  metadata: { name, namespace: 'n', uid: name, labels: { 'batch.kubernetes.io/job-name': 'train', ...labels }, ownerReferences },
  spec: { containers: [{ name: 'main' }] },
  status: { phase: 'Running' },
});
const owned = (name: string, uid: string): object => podOf(name, {}, [{ kind: 'Job', name: 'train', uid, controller: true }]);
const byName = '/logs/apis/batch/v1/namespaces/n/jobs/train';

test.each(['denied', 'loading', [runOf('new')]] as const)("a run's page follows the log of no other run of its name, whether or not the jobs can be seen: %j", async (theJobs) => {
  await show('#jobs/n/train@old');
  const followed = await answerAll((path) => (path.startsWith('/apis/batch/') ? theJobs : path.startsWith('/api/v1/namespaces/n/pods') ? [owned('train-x', 'new')] : []));
  expect(followed).toEqual([]);
});

test.each([['loading', '…', 'Failed'], [[], '60s', 'FailedNo retries left']] as const)("neither a job's run time nor why it failed is shown before the history has answered: %j", async (history, ran, state) => {
  const began = Date.now() - 120_000;
  const at = (ms: number): string => new Date(began + ms).toISOString();
  const failed = { ...runOf('old'), status: { failed: 1, startTime: at(0), conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', lastTransitionTime: at(60_000) }] } };
  await show('#jobs/n/train');
  await answerAll((path) => (path.startsWith('/history/') ? history : path.startsWith('/apis/batch/') ? [failed] : []));
  const fact = [...page.element.querySelectorAll('.fact')].find((one) => one.querySelector('dt')?.textContent === 'Run time');
  expect([fact?.querySelector('dd')?.textContent, page.element.querySelector('.state-mark')?.textContent]).toEqual([ran, state]);
});

test('of a run that was seen late the page says so where it tells the least that it ran, beside the hours that it used', async () => {
  const late = { namespace: 'n', name: 'train', uid: 'old', state: 'Running', waited: null, ran: { seconds: 0, since: new Date(Date.now() - 5_000).toISOString() }, hours: { cpu: 0, memory: 0, gpu: 12 }, startedAt: new Date().toISOString() };
  await show('#jobs/n/train@old');
  await answerAll((path) => (path.startsWith('/history/') ? (path.includes('uid=old') && !path.includes('view=') ? [late] : []) : path.startsWith('/apis/batch/') ? [runOf('old')] : []));
  const fact = [...page.element.querySelectorAll('.fact')].find((one) => one.querySelector('dt')?.textContent === 'Run time');
  expect(fact?.querySelector('dd')?.textContent).toMatch(/^≥ \d+s, seen late$/);
});

test("a run's page follows the log of its job while that has the name", async () => {
  await show('#jobs/n/train@old');
  expect(await answerAll((path) => (path.startsWith('/apis/batch/') ? [runOf('old')] : path.startsWith('/api/v1/namespaces/n/pods') ? [owned('train-a', 'old')] : []))).toEqual([byName]);
});

test.each([[[runOf('new')]], ['denied'], [[]]] as const)("of a run that has left pods behind these pods' log is followed, by pod: %j", async (theJobs) => {
  const left = podOf('train-a', { 'batch.kubernetes.io/controller-uid': 'old' });
  await show('#jobs/n/train@old');
  expect(await answerAll((path) => (path.startsWith('/apis/batch/') ? theJobs : path.startsWith('/api/v1/namespaces/n/pods') ? [left, owned('train-x', 'new')] : []))).toEqual(['/logs/api/v1/namespaces/n/pods/train-a']);
});

const crashing = {
  metadata: { name: 'train-a', namespace: 'n', uid: 'p', ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'old', controller: true }] },
  spec: { nodeName: 'node-1', containers: [{ name: 'main', resources: { limits: { memory: '4Gi' } } }] },
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'main', restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }, lastState: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }],
  },
};
const pendingPod = { ...crashing, status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }] } };
const worlds: [string, readonly object[], readonly object[], string][] = [
  ['there is no such job', [], [], 'There is no such job, and so no log.'],
  ['it has no pods yet', [runOf('old')], [], 'It has no pod at the moment, so nothing is written.'],
  ['no container has started', [runOf('old')], [pendingPod], 'Nothing can be written yet: no container has started (unschedulable).'],
  ['it crashes without a word', [runOf('old')], [crashing], 'Nothing was written: main was OOM-killed (exit 137), after 3 restarts.'],
  ['it runs', [runOf('old')], [owned('train-a', 'old')], 'Nothing was written yet.'],
];

test.each(worlds)('why a log has no lines is told as far as the page knows it: %s', async (_, theJobs, thePods, said) => {
  await show('#jobs/n/train');
  await answerAll((path) => (path.startsWith('/apis/batch/') ? theJobs : path.startsWith('/api/v1/namespaces/n/pods') ? thePods : []));
  expect(page.element.querySelector('[role=tabpanel]')?.textContent).toContain(said);
});

const podPage = async (found: readonly object[]): Promise<string> => {
  page = render(
    <KubecastProvider client={kc}>
      <PodPage view={parseView('#pods/n/train-a')} namespace="n" name="train-a" token={undefined} />
    </KubecastProvider>,
  );
  await pass();
  await answerAll((path) => (path.startsWith('/api/v1/namespaces/n/pods') ? found : []));
  return page.element.textContent;
};

test("a pod's page says why it crashes, and how much memory it may have", async () => {
  const text = await podPage([crashing]);
  for (const said of ['Why it does not run', 'main was OOM-killed (exit 137), after 3 restarts', 'Its memory limit: 4Gi', 'back-off 5m0s', 'Nothing was written: main was OOM-killed']) expect(text).toContain(said);
});

test("a pod's page, a node's and a job's say of a pod what the table of pods says", async () => {
  const found = [{ ...crashing, $status: 'CrashLoopBackOff' }];
  await podPage(found);
  const watches = server.requests.flatMap(({ url }) => [...new URL(url, 'http://x').searchParams.values()]);
  expect(watches.filter((one) => one.includes('/pods')).map(decodeURIComponent).join()).toContain('$status');
  expect(page.element.querySelector('.job-head .state-mark')?.textContent).toBe('CrashLoopBackOffOOMKilled · exit 137');
  page.unmount();
  page = render(
    <KubecastProvider client={kc}>
      <NodePage view={parseView('#kinds/nodes//node-1')} name="node-1" />
    </KubecastProvider>,
  );
  await pass();
  const node = { metadata: { name: 'node-1', uid: 'node-1' }, status: {} };
  await answerAll((path) => (path.startsWith('/api/v1/pods') ? found : path.startsWith('/api/v1/nodes') ? [node] : []));
  const address = [...page.element.querySelectorAll('.fact')].find((fact) => fact.querySelector('dt')?.textContent === 'Address');
  expect(address?.querySelector('dd')?.textContent).toBe('–');
  expect(page.element.querySelector('tbody .state-mark')?.textContent).toBe('CrashLoopBackOffOOMKilled · exit 137');
});

test('of a pod that is not there it is said that it has no log', async () => {
  expect(await podPage([])).toContain('There is no such pod. What a pod has written is gone with it');
});

test('whoever may not see a job is told so as tables tell it, once, and not by a page without anything on it', async () => {
  await show('#jobs/n/train');
  await answerAll(() => 'denied');
  expect(page.element.textContent).toContain('You may not see this');
  expect(page.element.querySelector('[role=tablist]')).toBeNull();
  expect(page.element.querySelectorAll('[role=alert]')).toHaveLength(1);
});
