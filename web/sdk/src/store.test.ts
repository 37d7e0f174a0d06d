import { describe, expect, test, vi } from 'vitest';
import { WatchedCollection } from './collection.ts';
import type { StreamEvent } from './events.ts';
import type { KubeObject } from './object.ts';
import { Store, type Sink } from './store.ts';

interface Thing extends KubeObject {
  readonly status?: { readonly n: number };
}

const thing = (uid: string, n = 0): Thing => ({ metadata: { name: `name-${uid}`, uid, resourceVersion: '1' }, status: { n } });

const of = (store: Store, name: string): Sink<Thing> => store.put(name, (changed) => new WatchedCollection<Thing>(changed));

/** A store whose notifications a test lets go by hand. */
function makeStore() {
  const pending: (() => void)[] = [];
  const store = new Store({ schedule: (flush) => pending.push(flush) });
  const [jobs, pods] = ['jobs', 'pods'].map((name) => of(store, name)) as [Sink<Thing>, Sink<Thing>];
  const told = { watch: 'jobs', id: 'e' };
  const tell = {
    added: (object: Thing) => store.apply({ ...told, type: 'added', object }),
    modified: (object: Thing) => store.apply({ ...told, type: 'modified', object }),
    deleted: (object: Thing) => store.apply({ ...told, type: 'deleted', object }),
    patched: (uid: string, patch: Record<string, unknown>) => store.apply({ ...told, type: 'patched', uid, resourceVersion: '9', patch }),
    synced: () => store.apply({ ...told, type: 'synced', resourceVersion: '1' }),
    reset: () => store.apply({ ...told, type: 'reset', data: {}, reason: 'expired' }),
    any: (event: Partial<StreamEvent>) => store.apply({ ...told, ...event } as StreamEvent),
  };
  const flush = (): void => pending.splice(0).forEach((run) => run());
  const uids = (): string[] => {
    flush();
    return jobs.getSnapshot().items.map((item) => item.metadata.uid);
  };
  const phase = (): string => {
    flush();
    return jobs.getSnapshot().phase;
  };
  return { store, tell, flush, pending, jobs, pods, uids, phase };
}

describe('changes', () => {
  test('added and modified upsert, deleted removes, an unknown deletion is nothing', () => {
    const { store, tell, uids, pending } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.modified(thing('b'));
    tell.added(thing('a', 1)); // a catch-up may say added for what is known
    tell.synced();
    expect(uids()).toEqual(['a', 'b']);
    tell.deleted(thing('nobody'));
    expect(pending).toHaveLength(0);
    tell.deleted(thing('a'));
    expect(uids()).toEqual(['b']);
  });

  test('an object made anew under its name is another one', () => {
    const { tell, uids } = makeStore();
    tell.added(thing('old'));
    tell.added({ ...thing('new'), metadata: { ...thing('new').metadata, name: 'name-old' } });
    tell.deleted(thing('old'));
    expect(uids()).toEqual(['new']);
  });

  test('a patch makes a new object with the new version and leaves the old one as it was', () => {
    const { tell, jobs, flush } = makeStore();
    const before = thing('a', 1);
    tell.added(before);
    tell.patched('a', { status: { n: 2 } });
    flush();
    expect(jobs.getSnapshot().items[0]).toEqual({ ...thing('a', 2), metadata: { ...before.metadata, resourceVersion: '9' } });
    expect(before.status?.n).toBe(1);
  });

  test('a patch for what was never told is reported, not swallowed', () => {
    const { tell } = makeStore();
    expect(tell.patched('a', {})).toBe(false);
    tell.added(thing('a'));
    expect(tell.patched('a', {})).toBe(true);
  });

  test('a bookmark tells nobody', () => {
    const { tell, pending } = makeStore();
    tell.any({ type: 'bookmark', resourceVersion: '5' });
    tell.any({ type: 'unknown', name: 'future', data: '' });
    expect(pending).toHaveLength(0);
  });

  test('watches do not see each other', () => {
    const { tell, flush, pods } = makeStore();
    tell.added(thing('a'));
    flush();
    expect(pods.getSnapshot().items).toHaveLength(0);
  });
});

describe('snapshots of the gateway', () => {
  test('at a reset the old rows stay until synced, then what was not told is gone', () => {
    const { store, tell, uids, phase } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.added(thing('b'));
    expect(phase()).toBe('loading');
    tell.synced();
    expect(phase()).toBe('current');
    tell.reset();
    expect(uids()).toEqual(['a', 'b']);
    expect(phase()).toBe('refreshing');
    tell.added(thing('c'));
    tell.added(thing('b', 1));
    expect(uids()).toEqual(['a', 'b', 'c']);
    tell.synced();
    expect(uids()).toEqual(['b', 'c']);
    expect(phase()).toBe('current');
  });

  test('a connection lost in the middle of a snapshot: its first half proves nothing', () => {
    const { store, tell, uids } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    store.opened(true, true); // a has been deleted since, and nobody will ever say so
    tell.added(thing('b'));
    tell.synced();
    expect(uids()).toEqual(['b']);
  });

  test('a stream without a position tells everything anew, also to a store that was current', () => {
    const { store, tell, uids, phase } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.synced();
    store.opened(false, false);
    expect(phase()).toBe('refreshing');
    tell.added(thing('b'));
    tell.synced();
    expect(uids()).toEqual(['b']);
  });

  test('a stream resumed after synced keeps everything, and is current once all that was missed is told', () => {
    const { store, tell, uids, phase } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.synced();
    store.opened(true, true);
    tell.modified(thing('b'));
    expect(uids()).toEqual(['a', 'b']);
    expect(phase()).toBe('refreshing');
    tell.any({ type: 'bookmark', resourceVersion: '9' });
    expect(phase()).toBe('current');
    store.opened(true, false); // taken over while it was live: nothing was missed
    expect(phase()).toBe('current');
  });

  test('a snapshot that no reset announced still decides: the connection broke between two resets', () => {
    const { store, tell, uids } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.synced();
    store.opened(true, true); // from a position that names the other watch's reset, so not this watch
    tell.added(thing('b'));
    tell.synced();
    expect(uids()).toEqual(['b']);
  });

  test('deleted and patched in the middle of a snapshot', () => {
    const { store, tell, uids } = makeStore();
    store.opened(false, false);
    tell.added(thing('a'));
    tell.added(thing('b'));
    tell.deleted(thing('a'));
    tell.patched('b', { status: { n: 1 } });
    tell.synced();
    expect(uids()).toEqual(['b']);
  });
});

describe('what else is told of a watch', () => {
  test('stale and live, and a new connection forgets stale', () => {
    const { store, tell, jobs, flush } = makeStore();
    tell.any({ type: 'stale', since: 5, reason: 'gone' });
    flush();
    expect(jobs.getSnapshot().stale).toEqual({ since: 5, reason: 'gone' });
    tell.any({ type: 'live', since: 6, reason: '' });
    flush();
    expect(jobs.getSnapshot().stale).toBeUndefined();
    tell.any({ type: 'stale', since: 7, reason: 'gone' });
    store.opened(true, true);
    flush();
    expect(jobs.getSnapshot().stale).toBeDefined(); // nobody has said otherwise yet
    tell.any({ type: 'bookmark', resourceVersion: '5' });
    flush();
    expect(jobs.getSnapshot().stale).toBeUndefined();
  });

  test('narrowed and widened', () => {
    const { store, tell, jobs, flush } = makeStore();
    expect(jobs.getSnapshot().namespaces).toBeUndefined();
    tell.any({ type: 'narrowed', namespaces: ['team-a'], names: {} });
    flush();
    expect(jobs.getSnapshot().namespaces).toEqual(['team-a']);
    tell.any({ type: 'widened', namespaces: ['team-a'], names: { 'team-b': ['train'], '': ['any'] } });
    flush();
    expect(jobs.getSnapshot().namespaces).toEqual(['team-a', 'team-b']);
    store.opened(true, true); // what has not changed is not told again where it left off
    flush();
    expect(jobs.getSnapshot().namespaces).toEqual(['team-a', 'team-b']);
    tell.any({ type: 'widened', namespaces: undefined, names: {} });
    flush();
    expect(jobs.getSnapshot().namespaces).toBeUndefined();
    tell.any({ type: 'narrowed', namespaces: ['team-a'], names: {} });
    store.opened(false, false); // which is told from the beginning
    flush();
    expect(jobs.getSnapshot().namespaces).toBeUndefined();
  });
});

describe('what restricts a watch is told when a connection begins', () => {
  test('so a connection that tells of none has none, whatever the one before said', () => {
    const { store, tell, jobs, flush } = makeStore();
    const namespaces = () => {
      flush();
      return jobs.getSnapshot().namespaces;
    };
    tell.any({ type: 'narrowed', namespaces: ['team-a'], names: {} });
    tell.synced();
    store.opened(true, true);
    tell.reset();
    expect(namespaces()).toEqual(['team-a']); // it may still be told
    tell.any({ type: 'narrowed', namespaces: ['team-b'], names: {} });
    tell.synced();
    expect(namespaces()).toEqual(['team-b']);
    store.opened(true, true);
    tell.reset();
    tell.added(thing('a'));
    expect(namespaces()).toBeUndefined();
  });
});

describe('subscribers', () => {
  test('a burst is one notification, and between two the snapshot is the same object', () => {
    const { tell, jobs, flush, pending } = makeStore();
    const listener = vi.fn();
    jobs.subscribe(listener);
    const before = jobs.getSnapshot();
    for (let n = 0; n < 1_000; n++) tell.added(thing(String(n)));
    expect(pending).toHaveLength(1);
    expect(jobs.getSnapshot()).toBe(before);
    flush();
    expect(listener).toHaveBeenCalledTimes(1);
    expect(jobs.getSnapshot().items).toHaveLength(1_000);
    expect(jobs.getSnapshot()).toBe(jobs.getSnapshot());
  });

  test('objects that did not change keep their identity', () => {
    const { tell, jobs, flush } = makeStore();
    tell.added(thing('a'));
    tell.added(thing('b'));
    flush();
    const [a, b] = jobs.getSnapshot().items;
    tell.modified(thing('b', 1));
    flush();
    expect(jobs.getSnapshot().items[0]).toBe(a);
    expect(jobs.getSnapshot().items[1]).not.toBe(b);
  });

  test('only the subscribers of what changed are told, and none that has left', () => {
    const { tell, jobs, pods, flush } = makeStore();
    const ofJobs = vi.fn();
    const ofPods = vi.fn();
    const leave = jobs.subscribe(ofJobs);
    pods.subscribe(ofPods);
    tell.added(thing('a'));
    flush();
    leave();
    tell.added(thing('b'));
    flush();
    expect(ofJobs).toHaveBeenCalledTimes(1);
    expect(ofPods).not.toHaveBeenCalled();
  });

  test('one that throws keeps the news from nobody else', () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const { store, tell, jobs, pods, flush } = makeStore();
    const listener = vi.fn();
    jobs.subscribe(() => {
      throw new Error('boom');
    });
    jobs.subscribe(listener);
    tell.added(thing('a'));
    store.apply({ watch: 'pods', id: '', type: 'added', object: thing('p') });
    flush();
    expect(listener).toHaveBeenCalledOnce();
    expect(pods.getSnapshot().items).toHaveLength(1);
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test('a function subscribed twice is told until both have left; one that leaves meanwhile is told no more', () => {
    const { tell, jobs, flush } = makeStore();
    const listener = vi.fn();
    const leave = jobs.subscribe(listener);
    const leaveToo = jobs.subscribe(listener);
    leave();
    tell.added(thing('a'));
    flush();
    expect(listener).toHaveBeenCalledOnce();
    leaveToo();
    let leaveLast: () => void = () => undefined;
    jobs.subscribe(() => leaveLast());
    leaveLast = jobs.subscribe(listener);
    tell.added(thing('b'));
    flush();
    expect(listener).toHaveBeenCalledOnce();
  });

  test('without a schedule subscribers are told in a browser, too, whose microtasks are for the global object only', async () => {
    const queue = globalThis.queueMicrotask;
    vi.stubGlobal('queueMicrotask', function (this: unknown, what: () => void) {
      if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation');
      queue(what);
    });
    const store = new Store();
    const jobs = of(store, 'jobs');
    store.apply({ watch: 'jobs', id: 'e', type: 'added', object: thing('a') });
    await Promise.resolve();
    vi.unstubAllGlobals();
    expect(jobs.getSnapshot().items).toHaveLength(1);
  });

  test('a schedule that runs at once, or fails once, does not silence the store', () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const fails = vi.fn((flush: () => void) => flush()).mockImplementationOnce(() => {
      throw new Error('the page is being unloaded');
    });
    for (const schedule of [fails, (flush: () => void) => flush()]) {
      const store = new Store({ schedule });
      const jobs = of(store, 'jobs');
      for (const uid of ['a', 'b']) store.apply({ watch: 'jobs', id: '', type: 'added', object: thing(uid) });
      expect(jobs.getSnapshot().items).toHaveLength(2);
    }
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test('by default a microtask gathers what arrives in one chunk', async () => {
    const store = new Store();
    const jobs = of(store, 'jobs');
    const listener = vi.fn();
    jobs.subscribe(listener);
    store.apply({ watch: 'jobs', id: '', type: 'added', object: thing('a') });
    store.apply({ watch: 'jobs', id: '', type: 'added', object: thing('b') });
    await Promise.resolve();
    expect(listener).toHaveBeenCalledTimes(1);
  });
});
