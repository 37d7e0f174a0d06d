import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MockGateway } from '../../mock/gateway.ts';
import { seededRandom } from '../../mock/random.ts';
import { createKubecast, type Kubecast, type Watch } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';

// Against a real HTTP server on loopback, through the platform's own fetch.

const jobsKind = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const podsKind = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });

let gateway: MockGateway;
let kc: Kubecast;

beforeEach(async () => {
  gateway = new MockGateway();
  await gateway.start();
});

afterEach(async () => {
  kc.close();
  await gateway.stop();
});

function connect(): void {
  kc = createKubecast({ gateway: gateway.url, token: () => 'let-me-in', random: () => 0, linger: 0 }); // no time to lose between attempts
}

/** Follows both kinds, until `leave`. */
function watch(): { jobs: Watch<KubeObject>; pods: Watch<KubeObject>; leave: { jobs: () => void; pods: () => void } } {
  connect();
  const jobs = kc.watch(jobsKind);
  const pods = kc.watch(podsKind, { namespace: 'team-a', labels: 'a=b' });
  return { jobs, pods, leave: { jobs: jobs.subscribe(() => undefined), pods: pods.subscribe(() => undefined) } };
}

const status = (of: Watch<KubeObject>): string => of.getSnapshot().reason ?? of.getSnapshot().status;
const names = (of: Watch<KubeObject>): string => of.getSnapshot().data.map(({ metadata }) => metadata.name).join();

/** Resolves as soon as `check` holds. */
async function until(check: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!check()) {
    if (Date.now() > deadline) throw new Error(`still not so: ${check.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const versions = (objects: readonly KubeObject[]): string[] =>
  objects.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort();

const job = (name: string) => ({ metadata: { name, namespace: 'team-a', labels: { a: 'b' } } });

test('snapshot, change and deletion arrive, each at its own watch', async () => {
  const a = gateway.cluster.put('jobs', job('a'));
  gateway.cluster.put('pods', job('p'));
  gateway.cluster.put('pods', { metadata: { name: 'elsewhere', namespace: 'team-b' } });
  const { jobs, pods } = watch();
  await until(() => status(pods) === 'live');
  expect(kc.connection.getSnapshot()?.status).toBe('live');
  expect(names(pods)).toBe('p');
  gateway.cluster.put('jobs', job('b'));
  gateway.cluster.remove('jobs', a.metadata.uid);
  await until(() => names(jobs) === 'b');
});

test('the path of each watch reaches the server whole, its own query included', async () => {
  watch();
  await until(() => gateway.requests.length > 0);
  const asked = new URL(gateway.requests[0]?.url ?? '', gateway.url).searchParams;
  expect(asked.get('w1')).toBe('/api/v1/namespaces/team-a/pods?labelSelector=a%3Db');
});

test('a gateway that is gone for a while: rows stay, what happened meanwhile is told, no snapshot', async () => {
  for (const name of ['a', 'b']) gateway.cluster.put('jobs', job(name));
  const { jobs } = watch();
  await until(() => status(jobs) === 'live');
  await gateway.stop();
  await until(() => status(jobs) === 'reconnecting');
  gateway.cluster.put('jobs', job('c'));
  expect(names(jobs)).toBe('a,b');
  await gateway.start();
  await until(() => names(jobs) === 'a,b,c' && status(jobs) === 'live');
  expect(gateway.requests.at(-1)?.lastEventId).toMatch(/^e1\.w0-\d+\.w1-\d+$/);
});

test('another epoch: reset, and the rows of the old one are never taken away before the new are there', async () => {
  for (const name of ['a', 'b', 'c']) gateway.cluster.put('jobs', job(name));
  const { jobs } = watch();
  await until(() => status(jobs) === 'live');
  const seen = new Set<string>();
  const statuses = new Set<string>();
  jobs.subscribe(() => {
    seen.add(names(jobs));
    statuses.add(status(jobs));
  });
  gateway.epoch = 'e2';
  gateway.cutAll();
  await until(() => gateway.requests.length > 1 && status(jobs) === 'live');
  expect([...seen]).toEqual(['a,b,c']);
  expect([...statuses].join()).toMatch(/^reconnecting,(catching-up,)?live$/);
});

test('of several watches some: what stays goes on, what comes again is told anew, and nothing is shown as live that is not', async () => {
  gateway.cluster.put('jobs', job('a'));
  const gone = gateway.cluster.put('pods', job('p'));
  const { jobs, pods, leave } = watch();
  await until(() => status(jobs) === 'live' && status(pods) === 'live');
  const statuses = new Set<string>();
  jobs.subscribe(() => statuses.add(status(jobs)));
  leave.pods();
  await until(() => gateway.requests.length > 1);
  gateway.cluster.remove('pods', gone.metadata.uid);
  gateway.cluster.put('jobs', job('b'));
  await until(() => names(jobs) === 'a,b');
  const shown: string[] = [];
  pods.subscribe(() => shown.push(`${status(pods)} ${names(pods)}`));
  await until(() => status(pods) === 'live');
  expect(shown).not.toContain('live p');
  expect(names(pods)).toBe('');
  expect([...statuses]).toEqual(['live']);
  await until(() => gateway.streams.size === 1);
});

test('an inconsistent stream is thrown away and asked for from the start', async () => {
  gateway.cluster.put('jobs', job('a'));
  const { jobs } = watch();
  await until(() => status(jobs) === 'live');
  for (const stream of gateway.streams) stream.send(stream.watches[0], 'patched', { uid: 'nobody', resourceVersion: '1', patch: {} });
  await until(() => gateway.requests.length > 1);
  expect(gateway.requests.at(-1)?.lastEventId).toBe('');
  await until(() => status(jobs) === 'live');
});

describe('whatever breaks, whenever', () => {
  test.each(Array.from({ length: 6 }, (_, n) => n))('the rows end up as the cluster is (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    const { cluster } = gateway;
    // Connections break within a frame, between frames, and within the snapshot; some before any event.
    gateway.sabotage = (frame) => (random() < 0.02 ? Math.floor(random() * frame.length) : undefined);
    gateway.retry = 1;
    const made = watch();
    let notifications = 0;
    made.jobs.subscribe(() => notifications++);
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
        // One that ceases to be selected is told as deleted.
        cluster.put(resource, { metadata: { ...job('changed').metadata, uid, labels: { a: random() < 0.7 ? 'b' : 'c' } } });
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
      const all = cluster.list(resource);
      const want = versions(resource === 'pods' ? all.filter(({ metadata }) => metadata.labels?.['a'] === 'b') : all).join('\n');
      const got = made[resource];
      await until(() => {
        kc.wake();
        return status(got) === 'live' && versions(got.getSnapshot().data).join('\n') === want;
      });
    }
    expect(notifications).toBeGreaterThan(20);
  });
});
