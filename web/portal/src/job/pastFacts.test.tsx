import type { Kubecast, KubeObject, PastJob, Run } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import type { ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { Facts } from '../object/ObjectFrame.tsx';
import { parseView } from '../view/view.ts';
import { untilReadAgain } from './Kept.tsx';
import { latestLife } from './life.ts';
import { MemoryLimit, Parts, pastFacts, PastMark, Why } from './PastFacts.tsx';
import { WhyUnwritten } from '../pods/WhyUnwritten.tsx';
import { PodsEver } from './Pods.tsx';
import { jobs } from './resources.ts';
import { Timeline } from './Timeline.tsx';
import { WaitedLately } from './WaitedLately.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const view = parseView('#jobs/n/j');
const cause = { text: '<b>main was OOM-killed</b> (exit 137) on n1', reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: 'j-0', node: 'n1', pods: 1 };
const past = (more: Partial<PastJob> = {}): PastJob => ({
  namespace: 'n', name: 'j', uid: 'u', owner: '', queue: '', state: 'Failed', since: 5, reason: 'BackoffLimitExceeded', message: 'm', attempt: 2, createdAt: 1, startedAt: 2, endedAt: 5, durations: {},
  reasons: [], progress: undefined, parent: undefined, children: 0, hours: { cpu: 12.5, memory: 0.0042, gpu: 0 }, podFailures: 1, preemptions: 0, podCount: 3, ...more,
});
const facts = (job: PastJob): Record<string, string> => {
  page = render(<Facts facts={pastFacts(job, view)} />);
  const textOf = (one: Element, part: string): string => one.querySelector(part)?.textContent ?? '';
  return Object.fromEntries([...page.element.querySelectorAll('.fact')].map((one): [string, string] => [textOf(one, 'dt'), textOf(one, 'dd')]));
};

test('what a job used is told with its units, little of it too, and no GPUs where there were none', () => {
  expect(facts(past())).toEqual({ Attempts: '2', 'Pods failed': '1 of 3', Used: '12.5 CPU hours0.0042 GiB hours' });
  page.unmount();
  expect(facts(past({ requests: { 'nvidia.com/gpu': '64', cpu: '2' } }))).toMatchObject({ Requested: 'cpu 2nvidia.com/gpu 64' });
  page.unmount();
  expect(facts(past({ hours: { cpu: 0, memory: 0, gpu: 1_234.56 }, preemptions: 2, deletedAt: 9 }))).toMatchObject({ Used: '0 CPU hours0 GiB hours1,234.6 GPU hours', Preemptions: '2', Removed: expect.any(String) as string });
});

test('of a job that has not run, nothing is counted that it did', () => {
  const waiting = { state: 'Pending', attempt: 1, startedAt: undefined, endedAt: undefined, hours: { cpu: 0, memory: 0, gpu: 0 }, podFailures: 0, podCount: 0 };
  expect(facts(past(waiting))).toEqual({});
  page.unmount();
  expect(facts(past({ ...waiting, hours: { cpu: 0.5, memory: 0, gpu: 0 } }))).toEqual({ Attempts: '1', Used: '0.5 CPU hours0 GiB hours' }); // its pods held that
  page.unmount();
  expect(facts(past({ ...waiting, attempt: 2 }))).toEqual({ Attempts: '2', Used: '0 CPU hours0 GiB hours' });
});

test('what is not known is not told as nothing, but why it is not known', () => {
  const unknown = { hours: null, podFailures: null, preemptions: null, podCount: null };
  expect(facts(past(unknown))).toEqual({ Attempts: '2', Used: '– (nothing is known of its pods)' });
  page.unmount();
  const parent = { resource: 'jobsets.jobset.x-k8s.io', name: 'set', uid: 's' };
  expect(facts(past({ ...unknown, parent }))).toEqual({ 'Part of': 'set', Attempts: '2', Used: '– (counted where it is a part)' });
  expect(page.element.querySelector('a')?.getAttribute('href')).toBe('#kinds/jobsets.jobset.x-k8s.io/n/set');
});

test("a job that ran out of memory says how much it might have, as its object does, and once that is gone as that was", async () => {
  const template = { template: { spec: { containers: [{ name: 'main', resources: { limits: { memory: '4Gi' } } }] } } };
  const show = (job: KubeObject | undefined): void => {
    page = render(
      <KubecastProvider client={kc}>
        <Why past={past({ cause, spec: true })} limit={<MemoryLimit past={past({ cause, spec: true })} job={job} />} view={view} there={() => true} />
      </KubecastProvider>,
    );
  };
  show({ metadata: { name: 'j', uid: 'u' }, spec: template } as unknown as KubeObject);
  expect(page.element.textContent).toContain('Its memory limit: 4Gi');
  page.unmount();
  show(undefined);
  await act(() => vi.advanceTimersByTimeAsync(0));
  expect(server.last.url).toContain('view=spec');
  server.last.refuse(200, {}, JSON.stringify({ metadata: { name: 'j', uid: 'u' }, spec: template }));
  await act(() => vi.advanceTimersByTimeAsync(100));
  expect(page.element.textContent).toContain('Its memory limit: 4Gi');
});

test('why it ended is a text of strangers, and links to a pod only while that is there', () => {
  page = render(<Why past={past({ cause })} view={view} there={() => true} />);
  expect(page.element.textContent).toBe('Why it failed<b>main was OOM-killed</b> (exit 137) on n1Pod: j-0Jobs here that ended alike');
  expect(page.element.querySelector('b')).toBeNull();
  expect([...page.element.querySelectorAll('a')].map((one) => one.getAttribute('href'))).toEqual(['#pods/n/j-0', '#history?ns=n&cause=OOMKilled']);
  page.unmount();
  page = render(<Why past={past({ cause, state: 'Deleted', durations: { Failed: 1 } })} view={view} there={() => false} />);
  expect(page.element.textContent).toContain('Why it failed');
  expect(page.element.querySelectorAll('a')).toHaveLength(1);
  page.unmount();
  page = render(<Why past={past({ state: 'Succeeded', reason: '', message: '' })} view={view} there={() => false} />);
  expect(page.element.textContent).toBe('');
});

test('all that a controller says can be read without pointing at it, and a long text does not push away the rest', () => {
  const said = `${'word '.repeat(60)}end`;
  const to = (seq: string, message: string) => ({ seq, namespace: 'n', name: 'j', uid: 'u', from: undefined, to: 'Failed', at: 1, late: false, attempt: 1, reason: 'R', message, owner: '', cause });
  page = render(<Timeline life={latestLife([to('1', 'short'), to('2', said)], 'u')} status="live" message={undefined} />);
  const [long, short] = [...page.element.querySelectorAll('li')];
  expect(short?.querySelector('.timeline-said')?.textContent).toBe('R: short');
  expect(long?.querySelector('summary')?.textContent?.length).toBeLessThan(170);
  expect(long?.querySelector('details')?.textContent?.replace(' …', '')).toBe(`R: ${said}`);
  expect(page.element.querySelector('[title]')).toBeNull();
});

test('a state that was seen late says so beside the least that it lasted', () => {
  const step = { seq: '1', namespace: 'n', name: 'j', uid: 'u', from: undefined, to: 'Pending', at: Date.now() - 37_000, late: true, attempt: 1, reason: '', message: '', owner: '' };
  page = render(<Timeline life={latestLife([step], 'u')} status="live" message={undefined} />);
  expect(page.element.querySelector('.timeline-lasts')?.textContent).toMatch(/^≥ \d+s, seen late$/);
  expect(page.element.querySelector('.timeline-at')?.textContent).toMatch(/ · may have begun earlier$/);
});

/** What can be read without opening anything. */
const readable = (): string => {
  const copy = page.element.cloneNode(true) as HTMLElement;
  for (const part of copy.querySelectorAll('details:not([open]) > :not(summary)')) part.remove();
  return copy.textContent;
};

test('what the scheduler says of a job that waits is told once, in words, and as it was said to those who ask', () => {
  const said = '0/10 nodes are available: 10 Insufficient nvidia.com/gpu.';
  const text = 'no node fits: too little nvidia.com/gpu free (all 10)';
  const waiting = past({ state: 'Pending', since: 1, reason: 'Unschedulable', message: said, reasons: [{ at: 2, reason: 'Unschedulable', message: said, text }] as unknown as PastJob['reasons'] });
  const step = { seq: '1', namespace: 'n', name: 'j', uid: 'u', from: undefined, to: 'Pending', at: 1, late: false, attempt: 1, reason: 'Unschedulable', message: said, owner: '' };
  page = render(
    <>
      <Why past={waiting} view={view} there={() => true} />
      <Timeline life={latestLife([step], 'u')} status="live" message={undefined} told={waiting} />
      <div>
        <WhyUnwritten of={{ text: 'Nothing can be written yet.', why: said }} />
      </div>
    </>,
  );
  expect(readable()).toContain(text);
  expect(readable()).not.toContain(said);
  expect(readable().split('Unschedulable')).toHaveLength(3); // the sentence, and the step's reason
  expect(page.element.textContent.split(said)).toHaveLength(4);
  page.unmount();
  page = render(<Timeline life={latestLife([step], 'u')} status="live" message={undefined} />);
  expect(readable()).toContain(said); // nobody else tells it
});

test('where no queue says when a job starts, it is told how long such jobs waited, unless there were few', async () => {
  const show = async (job: PastJob, answer?: object): Promise<string> => {
    page = render(
      <KubecastProvider client={kc}>
        <WaitedLately past={job} />
      </KubecastProvider>,
    );
    await pass();
    if (answer) server.last.refuse(200, {}, JSON.stringify({ items: [answer], continue: '' }));
    await pass();
    const text = page.element.textContent;
    page.unmount();
    return text;
  };
  const usage = { key: 'n', from: null, jobs: 42, waitedSeconds: { count: 7, p50: 120, p90: 2_100, max: 9_000 }, ranSeconds: null, cpuHours: 0, memoryHours: 0, gpuHours: 0 };
  expect(await show(past({ state: 'Pending' }), usage)).toBe('Waits latelyHalf of this namespace’s jobs began within 2m, nine of ten within 35m (known of 7 of 42 jobs in 7 days)');
  expect(new URLSearchParams(server.last.url.split('?')[1]).get('view')).toBe('usage');
  expect(await show(past({ state: 'Pending' }), { ...usage, jobs: 4 })).toBe('');
  expect(await show(past({ state: 'Pending' }), { ...usage, waitedSeconds: { ...usage.waitedSeconds, count: 2 } })).toBe('Waits latelyNot known: 2 of this namespace’s 42 jobs in 7 days were seen to begin');
  expect(await show(past({ state: 'Pending' }), { ...usage, waitedSeconds: null })).toBe('Waits latelyNot known: none of this namespace’s 42 jobs in 7 days was seen to begin');
  const asked = server.requests.length;
  expect(await show(past({ state: 'Running' }))).toBe('');
  expect(await show(past({ state: 'Queued', queue: 'gpu' }))).toBe('');
  expect(server.requests).toHaveLength(asked);
  page = render(<></>);
});

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));

test('parts are asked for by what they are parts of, wherever they may be, and lead to their pages', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Parts past={past({ children: 3 })} signal={undefined} view={view} />
    </KubecastProvider>,
  );
  const asked: string[] = [];
  const kinds = { items: [{ metadata: { name: 'jobset.x-k8s.io' }, versions: [{ version: 'v1alpha2', resources: [{ resource: 'jobsets', responseKind: { kind: 'JobSet' }, scope: 'Namespaced', verbs: ['watch'] }] }] }] };
  const answers = new Map<string, [number, object]>([
    ['/api', [200, {}]],
    ['/apis', [200, kinds]],
    ['/history/apis/batch/v1/namespaces/n/jobs', [200, { items: [{ uid: 'b', name: 'j-10', namespace: 'n', state: 'Running' }, { uid: 'a', name: 'j-2', namespace: 'n', state: 'Failed', durations: {}, cause }] }]],
    ['/history/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets', [404, {}]],
  ]);
  for (let round = 0; round < 12; round++) {
    await pass(250);
    for (const request of server.requests.splice(0)) {
      const { pathname, search } = new URL(request.url, 'http://x');
      asked.push(pathname + search);
      const [status, body] = answers.get(pathname) ?? [200, { watch: [{ group: 'jobset.x-k8s.io', resource: 'jobsets', all: true, namespaces: [] }] }];
      request.refuse(status, {}, JSON.stringify(body));
    }
  }
  expect(asked).toContain('/history/apis/batch/v1/namespaces/n/jobs?parent=u&limit=100');
  expect([...page.element.querySelectorAll('li')].map((one) => [one.querySelector('a')?.getAttribute('href'), one.textContent])).toEqual([
    ['#jobs/n/j-2@a', `j-2 Failed${cause.text}`],
    ['#jobs/n/j-10@b', 'j-10 Running'],
  ]);
  expect(page.element.textContent).toContain('1 more part is not shown.');
});

test('how a pod ended is told where its job is asked for, with the older ones that are not shown', async () => {
  const run = { seq: 'x', namespace: 'n', job: {}, uid: 'p', name: 'j-0', index: '0', node: 'n1', createdAt: '2026-01-02T03:00:00Z', startedAt: '2026-01-02T03:00:00Z', endedAt: '2026-01-02T03:04:05Z', reason: 'OOMKilled', container: 'main', exitCode: 137, message: '<i>x</i>' } satisfies Partial<Record<keyof Run, unknown>>;
  page = render(
    <KubecastProvider client={kc}>
      <PodsEver of={jobs} past={{ namespace: 'n', uid: 'u', podCount: 3, parent: undefined }} rows={[]} status="live" message={undefined} view={view} />
    </KubecastProvider>,
  );
  await pass();
  const [, path = ''] = [...new URL(server.last.url, 'http://x').searchParams].find(([, value]) => value.startsWith('/history')) ?? [];
  expect(path).toBe('/history/apis/batch/v1/namespaces/n/jobs?view=runs&uid=u&limit=500');
  const [name = ''] = [...new URL(server.last.url, 'http://x').searchParams].find(([, value]) => value === path) ?? [];
  server.last.accept(`event: ${name}.run\nid: e.${name}-1\ndata: ${JSON.stringify(run)}\n\nevent: ${name}.synced\nid: e.${name}-1\ndata: {"seq":"1","count":1}\n\n`);
  await pass(100);
  const cells = [...page.element.querySelectorAll('tbody td')].map((one) => one.textContent);
  expect(cells.slice(0, 4)).toEqual(['j-0', 'OOMKilled', '0', 'n1']);
  expect(cells.slice(6)).toEqual(['4m5s', '0', 'main: OOMKilled exit code 137<i>x</i>']);
  expect(page.element.textContent).toContain('2 older pods are not shown.');
});

test('a job is read again while it goes on, and after its end as long as more may be found out of why', () => {
  const now = Date.now();
  expect(untilReadAgain(past({ state: 'Running' }))).toBeGreaterThan(0);
  expect(untilReadAgain(past({ state: 'Pending' }))).toBeGreaterThan(0);
  expect(untilReadAgain(past({ since: now }))).toBeGreaterThan(0);
  for (const settled of [undefined, past({ since: now, cause }), past({ since: now - 1_000_000 }), past({ state: 'Succeeded' }), past({ state: 'Deleted' })]) expect(untilReadAgain(settled)).toBeUndefined();
});

test('a job that was deleted after its end stands as it ended, and one that was deleted before that says so once', () => {
  page = render(<PastMark past={past({ state: 'Deleted', durations: { Failed: 3 } })} />);
  expect(page.element.textContent).toBe('Failedremoved');
  page.unmount();
  page = render(<PastMark past={past({ state: 'Deleted' })} />);
  expect(page.element.textContent).toBe('Deleted');
});
