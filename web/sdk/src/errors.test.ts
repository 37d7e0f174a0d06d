// Each row of the README's table of what is shown, and of what went wrong, is brought about here.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MockGateway, MockPast } from '../../mock/index.ts';
import { answerTo, AskedError, createKubecast, defineResource, meOf, pastJobs, pastSpec, transitions, type Kubecast, type KubeObject } from './index.ts';
import { idleWatch } from './skip.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });
const everywhere = '/history/apis/batch/v1/jobs';

let gateway: MockGateway;
let kc: Kubecast;
beforeEach(() => {
  gateway = new MockGateway();
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' } });
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0, linger: 0 });
});
afterEach(() => kc.close());

/** What is shown of a watch, once it is that. */
async function becomes(watch: ReturnType<Kubecast['watch']>, status: string, reason?: string, rows = 0): Promise<void> {
  watch.subscribe(() => undefined);
  const now = () => [watch.getSnapshot().status, watch.getSnapshot().error?.reason, watch.getSnapshot().data.length];
  await expect.poll(now, { timeout: 30_000 }).toEqual([status, reason, rows]);
}

const shown: Record<string, () => Promise<void> | void> = {
  idle: () => {
    expect(idleWatch.getSnapshot()).toMatchObject({ status: 'idle', data: [], error: undefined });
  },
  loading: () => {
    gateway.away = true;
    return becomes(kc.watch(jobs), 'loading', 'network');
  },
  live: () => becomes(kc.watch(jobs), 'live', undefined, 1),
  stale: async () => {
    const watch = kc.watch(jobs);
    await becomes(watch, 'live', undefined, 1);
    gateway.fault.stale();
    await becomes(watch, 'stale', undefined, 1);
    expect(watch.getSnapshot()).toMatchObject({ reason: 'unreachable', asOf: expect.any(Number) as number });
  },
  denied: async () => {
    gateway.permit('let-me-in', { namespaces: ['team-b'] });
    await becomes(kc.watch(jobs, { namespace: 'team-a' }), 'denied', 'http:403');
    gateway.users.clear();
    await becomes(kc.watch(pods), 'denied', 'http:401');
  },
  failed: async () => {
    const past = kc.follow(transitions(jobs, {}));
    past.subscribe(() => undefined);
    await expect.poll(() => past.getSnapshot(), { timeout: 30_000 }).toMatchObject({ status: 'failed', error: { reason: 'http:404', message: 'the gateway keeps no history' } });
    const watch = kc.watch(jobs);
    kc.close();
    await becomes(watch, 'failed', 'closed');
  },
};

const asked: Record<string, () => Promise<unknown>> = {
  '401 Unauthorized': async () => {
    gateway.users.clear();
    const me = meOf(kc);
    me.subscribe(() => undefined);
    await expect.poll(() => me.getSnapshot(), { timeout: 30_000 }).toMatchObject({ status: 'denied', error: { status: 401, reason: 'Unauthorized' } });
    return pastJobs(kc, jobs, {});
  },
  '403 Forbidden': () => {
    gateway.past = new MockPast();
    gateway.permit('let-me-in', { namespaces: ['team-b'] });
    return pastJobs(kc, jobs, { namespace: 'team-a' });
  },
  '404 NotEnabled': async () => {
    await expect(answerTo(kc, '/notifications')).rejects.toMatchObject({ status: 404, reason: 'NotEnabled' });
    return pastJobs(kc, jobs, {});
  },
  '404 NotRecorded': () => {
    gateway.past = new MockPast();
    return pastJobs(kc, pods, {});
  },
  '404 NotKept': async () => {
    const past = (gateway.past = new MockPast());
    past.record('train', 'Failed');
    const uid = (await pastJobs(kc, jobs, {})).items[0]?.uid ?? '';
    expect(await pastSpec(kc, jobs, { namespace: 'team-a', name: 'train', uid })).toBeUndefined();
    return answerTo(kc, `/history/apis/batch/v1/namespaces/team-a/jobs/train?view=spec&uid=${uid}`);
  },
  '404 NotFound': () => answerTo(kc, '/nothing'),
  '410 Expired': async () => {
    gateway.cluster.put('jobs', { metadata: { name: 'eval', namespace: 'team-a' } });
    const list = '/apis/batch/v1/jobs?limit=1';
    const { metadata } = (await answerTo(kc, list)) as { metadata: { continue: string } };
    gateway.fault.expire();
    return answerTo(kc, `${list}&continue=${encodeURIComponent(metadata.continue)}`);
  },
  '429 TooManyRequests': () => {
    gateway.past = new MockPast();
    gateway.fault.tooMany();
    return answerTo(kc, everywhere);
  },
  '503 ServiceUnavailable': () => {
    gateway.past = new MockPast();
    gateway.pastAway = true;
    return answerTo(kc, everywhere);
  },
};

test.each(Object.entries(shown))('%s', (_, bring) => bring());

test.each(Object.entries(asked))('%s', async (which, ask) => {
  const error: unknown = await ask().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(AskedError);
  const { status, reason, message } = error as AskedError;
  expect([`${status} ${reason}`, message.length > 0]).toEqual([which, true]);
});

test('the table has these rows, and no other', () => {
  const [, section = ''] = readFileSync(new URL('../README.md', import.meta.url), 'utf8').split('\n## What is shown, and what went wrong\n');
  const cells = [...(section.split('\n## ')[0] ?? '').matchAll(/^\|(.*)\|$/gm)].map(([, row = '']) => row.split('|').map((cell) => cell.trim()));
  const [, , ...rows] = cells;
  expect(rows.flatMap(([, value = '']) => /^`(\w+)`$/.exec(value)?.[1] ?? [])).toEqual(Object.keys(shown));
  let statuses: string[] = [];
  const said = rows.slice(Object.keys(shown).length).flatMap(([, value = '', means = '']) => {
    if (value) statuses = value.split(', ');
    const reasons = [...means.matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, reason = '']) => reason);
    return reasons.map((reason, n) => `${statuses[n] ?? statuses[0] ?? ''} ${reason}`);
  });
  expect(said).toEqual(Object.keys(asked));
});
