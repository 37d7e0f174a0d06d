import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MockGateway } from '../../mock/gateway.ts';
import { seededRandom } from '../../mock/random.ts';
import { Live } from './live.ts';
import type { KubeObject } from './object.ts';

// Against a real HTTP server on loopback, through the platform's own fetch.

interface Job extends KubeObject {
  readonly status?: { readonly n: number };
}
type Kinds = { jobs: Job; pods: Job };

let gateway: MockGateway;
let live: Live<Kinds> | undefined;

beforeEach(async () => {
  gateway = new MockGateway();
  await gateway.start();
});

afterEach(async () => {
  live?.close();
  await gateway.stop();
});

function watch(): Live<Kinds> {
  live = new Live<Kinds>({
    gateway: gateway.url,
    watches: { jobs: '/apis/batch/v1/jobs', pods: '/api/v1/namespaces/team-a/pods?labelSelector=a%3Db' },
    token: () => 'let-me-in',
    random: () => 0, // no time to lose between attempts
  });
  return live;
}

/** Resolves as soon as `check` holds. */
async function until(check: () => boolean): Promise<void> {
  const deadline = Date.now() + 4_000;
  while (!check()) {
    if (Date.now() > deadline) throw new Error(`still not so: ${check.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const versions = (objects: readonly KubeObject[]): string[] =>
  objects.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort();

const job = (name: string) => ({ metadata: { name, namespace: 'team-a' } });

test('snapshot, change and deletion arrive, each at its own watch', async () => {
  const a = gateway.cluster.put('jobs', job('a'));
  gateway.cluster.put('pods', job('p'));
  gateway.cluster.put('pods', { metadata: { name: 'elsewhere', namespace: 'team-b' } });
  const made = watch();
  await until(() => made.collection('pods').getSnapshot().phase === 'current');
  expect(made.connection.getSnapshot().phase).toBe('live');
  expect(made.collection('pods').getSnapshot().items.map((pod) => pod.metadata.name)).toEqual(['p']);
  gateway.cluster.put('jobs', job('b'));
  gateway.cluster.remove('jobs', a.metadata.uid);
  await until(() => made.collection('jobs').getSnapshot().items.map((item) => item.metadata.name).join() === 'b');
});

test('the path of each watch reaches the server whole, its own query included', async () => {
  watch();
  await until(() => gateway.requests.length > 0);
  const asked = new URL(gateway.requests[0]?.url ?? '', gateway.url).searchParams;
  expect(asked.get('pods')).toBe('/api/v1/namespaces/team-a/pods?labelSelector=a%3Db');
});

test('a gateway that is gone for a while: rows stay, what happened meanwhile is told, no snapshot', async () => {
  for (const name of ['a', 'b']) gateway.cluster.put('jobs', job(name));
  const jobs = watch().collection('jobs');
  await until(() => jobs.getSnapshot().phase === 'current');
  await gateway.stop();
  await until(() => live?.connection.getSnapshot().phase === 'reconnecting');
  gateway.cluster.put('jobs', job('c'));
  expect(jobs.getSnapshot().items).toHaveLength(2);
  await gateway.start();
  await until(() => jobs.getSnapshot().items.length === 3);
  expect(live?.connection.getSnapshot().phase).toBe('live');
  expect(gateway.requests.at(-1)?.lastEventId).toMatch(/^e1\.jobs-\d+\.pods-\d+$/);
});

test('another epoch: reset, and the rows of the old one are never taken away before the new are there', async () => {
  for (const name of ['a', 'b', 'c']) gateway.cluster.put('jobs', job(name));
  const jobs = watch().collection('jobs');
  await until(() => jobs.getSnapshot().phase === 'current');
  const sizes = new Set<number>();
  jobs.subscribe(() => sizes.add(jobs.getSnapshot().items.length));
  gateway.epoch = 'e2';
  gateway.cutAll();
  await until(() => (gateway.requests.length > 1 ? jobs.getSnapshot().phase === 'current' : false));
  await until(() => live?.connection.getSnapshot().phase === 'live');
  expect([...sizes]).toEqual([3]);
});

test('of several watches some: what stays goes on, what comes again is told anew, and nothing is shown as current that is not', async () => {
  gateway.cluster.put('jobs', job('a'));
  const gone = gateway.cluster.put('pods', job('p'));
  const made = watch();
  const [jobs, pods] = [made.collection('jobs'), made.collection('pods')];
  await until(() => jobs.getSnapshot().phase === 'current' && pods.getSnapshot().phase === 'current');
  const phases = new Set<string>();
  jobs.subscribe(() => phases.add(jobs.getSnapshot().phase));
  made.watch(['jobs']);
  await until(() => pods.getSnapshot().phase === 'refreshing');
  gateway.cluster.remove('pods', gone.metadata.uid);
  gateway.cluster.put('jobs', job('b'));
  await until(() => jobs.getSnapshot().items.length === 2);
  expect(pods.getSnapshot().items).toHaveLength(1);
  made.watch(['jobs', 'pods']);
  await until(() => pods.getSnapshot().phase === 'current');
  expect(pods.getSnapshot().items).toHaveLength(0);
  expect([...phases]).toEqual(['current']);
  expect(made.connection.getSnapshot().phase).toBe('live');
  await until(() => gateway.streams.size === 1);
});

test('an inconsistent stream is thrown away and asked for from the start', async () => {
  gateway.cluster.put('jobs', job('a'));
  const jobs = watch().collection('jobs');
  await until(() => jobs.getSnapshot().phase === 'current');
  for (const stream of gateway.streams) stream.send(stream.watches[0], 'patched', { uid: 'nobody', resourceVersion: '1', patch: {} });
  await until(() => gateway.requests.length > 1);
  expect(gateway.requests.at(-1)?.lastEventId).toBe('');
  await until(() => jobs.getSnapshot().phase === 'current');
});

describe('whatever breaks, whenever', () => {
  test.each(Array.from({ length: 6 }, (_, n) => n))('the rows end up as the cluster is (seed %i)', { timeout: 30_000 }, async (seed) => {
    const random = seededRandom(seed);
    const { cluster } = gateway;
    // Connections break within a frame, between frames, and within the snapshot; some before any event.
    gateway.sabotage = (frame) => (random() < 0.02 ? Math.floor(random() * frame.length) : undefined);
    gateway.retry = 1;
    const made = watch();
    let notifications = 0;
    made.collection('jobs').subscribe(() => notifications++);
    const alive: { jobs: string[]; pods: string[] } = { jobs: [], pods: [] };
    // How often a connection breaks depends on the machine, so the number of attempts decides.
    for (let step = 0; step < 1_500 || gateway.requests.length < 40; step++) {
      const resource = random() < 0.5 ? 'jobs' : 'pods';
      const known = alive[resource];
      const uid = known[Math.floor(random() * known.length)];
      if (uid === undefined || random() < 0.3) {
        known.push(cluster.put(resource, job(`n${step}`)).metadata.uid);
      } else if (random() < 0.4) {
        cluster.remove(resource, uid);
        known.splice(known.indexOf(uid), 1);
      } else {
        cluster.put(resource, { metadata: { name: 'changed', namespace: 'team-a', uid } });
      }
      if (random() < 0.01) cluster.compact();
      if (random() < 0.005) gateway.epoch = `e${step}`;
      if (random() < 0.005) {
        await gateway.stop();
        await gateway.start();
      }
      if (random() < 0.02) for (const stream of gateway.streams) stream.goodbye('drain');
      if (random() < 0.1) await new Promise((resolve) => setTimeout(resolve, random() * 8));
    }
    gateway.sabotage = undefined;
    for (const resource of ['jobs', 'pods'] as const) {
      const want = versions(cluster.list(resource)).join('\n');
      const got = made.collection(resource);
      await until(() => {
        made.retryNow();
        return got.getSnapshot().phase === 'current' && versions(got.getSnapshot().items).join('\n') === want;
      });
    }
    expect(notifications).toBeGreaterThan(20);
  });
});
