// A page's tests against a gateway in memory must see what they would see over a network: objects, changes, cuts, resets, refusals.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MockGateway, MockInbox } from '../../mock/index.ts';
import { createKubecast, defineResource, inboxOf, type Kubecast, type KubeObject } from './index.ts';

interface Job extends KubeObject {
  readonly status?: { readonly active?: number };
}
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let gateway: MockGateway;
let kc: Kubecast;
beforeEach(() => {
  gateway = new MockGateway();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0, linger: 0 });
});
afterEach(() => kc.close());

const put = (name: string, namespace = 'team-a') => gateway.cluster.put('jobs', { metadata: { name, namespace } });

function watched(namespace?: string) {
  const watch = kc.watch(jobs, { namespace });
  const leave = watch.subscribe(() => undefined);
  return { leave, watch, shows: (...names: string[]) => expect.poll(() => [watch.getSnapshot().status, ...watch.getSnapshot().data.map(({ metadata }) => metadata.name)]).toEqual(names) };
}

test('objects come, change and go, also over cuts within a frame, and what was forgotten is told anew', async () => {
  put('one');
  put('elsewhere', 'team-b');
  const { shows, leave } = watched('team-a');
  await shows('live', 'one');
  const { metadata } = put('two');
  await shows('live', 'one', 'two');
  gateway.sabotage = (text) => (text.includes('"three"') ? text.length - 4 : undefined);
  gateway.cutAll();
  await expect.poll(() => gateway.streams.size).toBe(1);
  put('three');
  await expect.poll(() => gateway.streams.size).toBe(0);
  gateway.sabotage = undefined;
  await shows('live', 'one', 'two', 'three');
  gateway.away = true;
  gateway.cutAll();
  await shows('reconnecting', 'one', 'two', 'three');
  gateway.cluster.remove('jobs', metadata.uid);
  gateway.cluster.compact();
  put('four');
  gateway.away = false;
  kc.wake();
  await shows('live', 'one', 'three', 'four');
  leave();
  await expect.poll(() => gateway.streams.size).toBe(0); // who leaves is noticed
});

test('what is refused is denied, and the rest goes on', async () => {
  gateway.users.set('let-me-in', { namespaces: ['team-a'] });
  put('one');
  const [mine, theirs] = [watched('team-a'), watched('team-b')];
  await theirs.shows('denied');
  await mine.shows('live', 'one');
});

test('what a page writes arrives', async () => {
  gateway.inbox = new MockInbox();
  const { id } = gateway.inbox.tell('train', 'Failed');
  const inbox = inboxOf(kc);
  inbox.subscribe(() => undefined);
  await expect.poll(() => inbox.getSnapshot().unread).toBe(1);
  await inbox.markRead({ ids: [id] });
  expect(gateway.inbox.items.get(id)?.readAt).not.toBeNull();
});
