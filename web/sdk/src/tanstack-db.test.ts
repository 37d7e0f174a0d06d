import { and, count, createCollection, createLiveQueryCollection, eq, gt, inArray, isUndefined, like, or } from '@tanstack/db';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { MockGateway } from '../../mock/gateway.ts';
import { seededRandom } from '../../mock/random.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';
import { kubecastCollection } from './tanstack-db.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const object = (uid: string, resourceVersion: string): object => ({ metadata: { name: uid, uid, resourceVersion } });
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test('a collection is ready with the snapshot, has each change once, and leaves the stream when it is cleaned up', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  const collection = createCollection(kubecastCollection(kc, jobs));
  await settle();
  expect(server.requests).toHaveLength(0); // nobody uses it yet
  const preloaded = collection.preload();
  await settle();
  const body = server.last.accept(frame('w0.added', 'e', object('a', '1')) + frame('w0.added', 'e', object('b', '1')));
  await settle();
  expect(collection.status).toBe('loading'); // not before the snapshot is complete
  expect(collection.size).toBe(0);
  body.push(frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }));
  await preloaded;
  expect(collection.status).toBe('ready');
  expect([...collection.keys()].sort()).toEqual(['a', 'b']);
  const told: string[] = [];
  const subscription = collection.subscribeChanges((changes) => told.push(...changes.map(({ type, key }) => `${type} ${key}`)), { includeInitialState: true });
  expect(told.splice(0).sort()).toEqual(['insert a', 'insert b']);
  body.push(frame('w0.modified', 'e.w0-2', object('a', '2')) + frame('w0.deleted', 'e.w0-3', object('b', '3')) + frame('w0.added', 'e.w0-4', object('c', '4')));
  await settle();
  expect(told.sort()).toEqual(['delete b', 'insert c', 'update a']);
  expect(collection.get('a')?.metadata.resourceVersion).toBe('2');
  subscription.unsubscribe();
  await collection.cleanup();
  await settle();
  expect(server.last.aborted).toBe(true);
  kc.close();
});

test('what may not be watched fails the collection with the reason', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  const collection = createCollection(kubecastCollection(kc, jobs));
  const told = expect(collection.preload()).rejects.toThrow('HTTP 403');
  await settle();
  server.last.refuse(403);
  await settle();
  server.last.refuse(403);
  await told;
  expect(collection.status).toBe('error');
  kc.close();
});

// What TanStack's own suite asks of every collection that is loaded as a whole (predicates, collation, pages, joins, live updates, one
// synchronisation for many queries), asked while things change and connections break, and held against a computation from what there is.
describe("queries of TanStack DB are always those of the cluster's objects", () => {
  type Pod = KubeObject & { readonly spec: { readonly node?: string; readonly cpu: number }; readonly job: string };
  const pods = defineResource<Pod>()({ version: 'v1', plural: 'pods' });
  const kindJobs = defineResource<KubeObject & { readonly spec: { readonly team: string } }>()({ group: 'batch', version: 'v1', plural: 'jobs' });

  let gateway: MockGateway;
  let kc: Kubecast;
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
    vi.spyOn(console, 'warn').mockImplementation(() => undefined); // that large lists want an index
    gateway = new MockGateway();
    kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 1_000 });
  });
  afterEach(() => {
    kc.close();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
  const pass = (ms = 200): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

  test.each([1, 2, 3])('over changes, cuts and permissions that come and go (%i)', async (seed) => {
    const random = seededRandom(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const podRows = createCollection(kubecastCollection(kc, pods));
    const jobRows = createCollection(kubecastCollection(kc, kindJobs));
    const queries = {
      predicates: createLiveQueryCollection((q) =>
        q.from({ pod: podRows }).where(({ pod }) => and(gt(pod.spec.cpu, 3), or(like(pod.metadata.name, 'a%'), inArray(pod.metadata.namespace, ['n0', 'n1']), isUndefined(pod.spec.node)))),
      ),
      places: createLiveQueryCollection((q) =>
        q.from({ pod: podRows }).orderBy(({ pod }) => pod.spec.cpu, 'desc').orderBy(({ pod }) => pod.metadata.uid).offset(2).limit(5),
      ),
      joined: createLiveQueryCollection((q) =>
        q
          .from({ pod: podRows })
          .innerJoin({ job: jobRows }, ({ pod, job }) => eq(pod.job, job.metadata.uid))
          .select(({ pod, job }) => ({ uid: pod.metadata.uid, team: job.spec.team })),
      ),
      counted: createLiveQueryCollection((q) =>
        q.from({ pod: podRows }).groupBy(({ pod }) => pod.metadata.namespace).select(({ pod }) => ({ namespace: pod.metadata.namespace, pods: count(pod.metadata.uid) })),
      ),
    };
    const { predicates, places, joined, counted } = queries;
    const ignore = (): void => undefined;
    const look = (): readonly { unsubscribe(): void }[] => [predicates.subscribeChanges(ignore), places.subscribeChanges(ignore), joined.subscribeChanges(ignore), counted.subscribeChanges(ignore)];
    const looks = look();
    await pass(1_000);
    expect(gateway.streams.size).toBe(1);
    expect([...gateway.streams][0]?.watches.map(({ resource }) => resource).sort()).toEqual(['jobs', 'pods']);

    let allowed: readonly string[] | undefined;
    const change = (): void => {
      const resource = random() < 0.3 ? 'jobs' : 'pods';
      const name = `${'abc'[below(3)]}${below(6)}`;
      const namespace = `n${below(3)}`;
      const present = gateway.cluster.list(resource).find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
      if (present && random() < 0.4) {
        gateway.cluster.remove(resource, present.metadata.uid);
        return;
      }
      const metadata = { name, namespace, uid: present?.metadata.uid ?? `${resource}-${namespace}-${name}-${gateway.cluster.version}` };
      const jobs = gateway.cluster.list('jobs');
      const of = jobs[below(jobs.length)]?.metadata.uid ?? '';
      const spec = resource === 'jobs' ? { team: `t${below(3)}` } : { cpu: below(8), ...(random() < 0.5 && { node: `node-${below(3)}` }) };
      gateway.cluster.put(resource, { metadata, spec, job: of } as Parameters<typeof gateway.cluster.put>[1]);
    };
    const expected = (): Record<keyof typeof queries, unknown[]> => {
      const sees = ({ metadata }: KubeObject): boolean => allowed?.includes(metadata.namespace ?? '') ?? true;
      const all = (gateway.cluster.list('pods') as Pod[]).filter(sees);
      const jobs = new Map((gateway.cluster.list('jobs') as (KubeObject & { spec: { team: string } })[]).filter(sees).map((job) => [job.metadata.uid, job.spec.team]));
      const byCpu = [...all].sort((a, b) => b.spec.cpu - a.spec.cpu || (a.metadata.uid < b.metadata.uid ? -1 : 1));
      const namespaces = [...new Set(all.map(({ metadata }) => metadata.namespace))].sort();
      const matching = all.filter(({ spec, metadata }) => spec.cpu > 3 && (metadata.name.startsWith('a') || metadata.namespace !== 'n2' || spec.node === undefined));
      return {
        predicates: matching.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort(),
        places: byCpu.slice(2, 7).map(({ metadata }) => metadata.uid),
        joined: all.flatMap(({ metadata, job }) => (jobs.has(job) ? [`${metadata.uid} ${jobs.get(job)}`] : [])).sort(),
        counted: namespaces.map((namespace) => `${namespace} ${all.filter(({ metadata }) => metadata.namespace === namespace).length}`),
      };
    };
    const told = (): Record<keyof typeof queries, unknown[]> => ({
      predicates: queries.predicates.toArray.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort(),
      places: queries.places.toArray.map(({ metadata }) => metadata.uid),
      joined: queries.joined.toArray.map(({ uid, team }) => `${uid} ${team}`).sort(),
      counted: queries.counted.toArray.map((row) => `${row.namespace} ${row.pods}`).sort(),
    });
    for (let step = 0; step < 150; step++) {
      for (let n = below(6); n > 0; n--) change();
      const what = below(12);
      if (what === 0) gateway.cutAll();
      if (what === 1) gateway.cluster.compact();
      if (what === 2) gateway.epoch = `e${step}`;
      if (what === 3) {
        allowed = random() < 0.4 ? undefined : ['n0', 'n1', 'n2'].filter((_, n) => n === 0 || random() < 0.5);
        gateway.users.set('let-me-in', { ...(allowed && { namespaces: allowed }) });
        for (const stream of gateway.streams) stream.see(allowed);
      }
      await pass(2_000);
      expect(told(), `step ${step}`).toEqual(expected());
    }

    // What nobody looks at any more leaves the stream; looked at again, it is right again.
    for (const one of looks) one.unsubscribe();
    for (const query of Object.values(queries)) await query.cleanup();
    await Promise.all([podRows.cleanup(), jobRows.cleanup()]);
    await pass(5_000);
    expect(gateway.streams.size).toBe(0);
    change();
    const again = look();
    await pass(1_000);
    expect(told()).toEqual(expected());
    for (const one of again) one.unsubscribe();
  });
});
