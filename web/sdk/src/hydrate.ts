// A page that a server has rendered goes on from where the server stopped: without asking for what it has been given.

import { WatchedCollection, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import type { Entry, Kubecast, WatchSnapshot } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { isServer } from './runtime.ts';

/**
 * As JSON it may be written into a page, into a script element, too: what `JSON.stringify` makes of it has no `<`, whatever the objects
 * have in them. It says as much as its user may see, so it belongs into no shared cache.
 */
export interface Dehydrated {
  readonly lastEventId: string;
  /** In milliseconds since the epoch. */
  readonly asOf: number;
  readonly names: number;
  /** By path, what a gateway would have said to make it known. */
  readonly watches: { readonly [path: string]: { readonly name: string; readonly events: readonly StreamEvent[] } };
}

/** What `JSON.stringify` makes of it: events are a text within the text, for only so the signs that end an element can be written otherwise. */
interface Written {
  readonly watches: { readonly [path: string]: { readonly name: string; readonly events: string | readonly StreamEvent[] } };
}

const escapes: Record<string, string> = { '<': '\\u003c', '\u2028': '\\u2028', '\u2029': '\\u2029' };

/** No sign of it ends an element, opens a comment in one, or ends a line of a script. Paths have none of these signs: they are encoded. */
function written(state: Dehydrated): Written {
  const watches: Record<string, { name: string; events: string }> = {};
  for (const [path, { name, events }] of Object.entries(state.watches)) {
    watches[path] = { name, events: JSON.stringify(events).replace(/[<\u2028\u2029]/g, (sign) => escapes[sign] ?? '') };
  }
  return { ...state, watches };
}

/** How long what was given is watched before anybody looks at it, in milliseconds: parts of a page may come to life later. */
const patience = 5_000;

/**
 * On a server, once what is to be rendered is {@link ready}: what is known, and up to where. From here on watches have it for
 * their server snapshot, which says as of when it is.
 *
 * ```ts
 * const kc = createKubecast({ gateway, token: () => tokenOf(request) });
 * await ready(kc.watch(jobs, { namespace: 'team-a' }));
 * const state = dehydrate(kc);
 * const html = renderToString(<KubecastProvider client={kc}><RunningJobs /></KubecastProvider>);
 * kc.close();
 * ```
 *
 * Objects, pages and counts are given on. Logs and histories begin anew in the browser.
 */
export function dehydrate(kc: Kubecast): Dehydrated {
  const { client, entries, names, store } = kc.inside;
  // What was applied counts for the position, whether or not KubecastOptions.schedule has shown it yet.
  store.flush();
  const asOf = client?.asOf ?? Date.now();
  const watches: Record<string, Dehydrated['watches'][string]> = {};
  for (const [path, entry] of entries) {
    const snapshot = entry.collection.getSnapshot();
    const events = snapshot.phase === 'current' ? eventsOf(entry) : undefined;
    if (!events) continue;
    watches[path] = { name: entry.name, events };
    entry.server = old(snapshot, asOf);
  }
  const state: Dehydrated = { lastEventId: client?.lastEventId ?? '', asOf, names, watches };
  return Object.defineProperty(state, 'toJSON', { value: () => written(state) });
}

/**
 * In the browser, before anything is watched. The stream begins at the position of the server, and tells what has happened since.
 *
 * ```ts
 * const kc = createKubecast({ token });
 * hydrate(kc, JSON.parse(document.getElementById('kubecast').textContent));
 * hydrateRoot(document.body, <KubecastProvider client={kc}><RunningJobs /></KubecastProvider>);
 * ```
 *
 * On a server, which renders such a component once before, what was given is rendered, and nothing is followed.
 */
export function hydrate(kc: Kubecast, state: Dehydrated): void {
  if (kc.inside.entries.size > 0) throw new Error('something is watched already, and begins from nothing');
  const { watches } = state as Written;
  let begun = false;
  const eventsIn = ({ events }: Written['watches'][string]): readonly StreamEvent[] => (typeof events === 'string' ? (JSON.parse(events) as StreamEvent[]) : events);
  kc.restore({
    names: state.names,
    nameOf: (path) => (begun ? undefined : watches[path]?.name),
    begin: () => {
      if (begun) return undefined;
      begun = true;
      return state;
    },
    fill: (path, sink) => {
      const watch = watches[path];
      if (begun || !watch) return undefined;
      for (const event of eventsIn(watch)) sink.apply(event);
      sink.commit();
      return old(sink.getSnapshot(), state.asOf);
    },
  });
  for (const [path, watch] of Object.entries(watches)) {
    if (isServer || eventsIn(watch).some(({ type }) => type === 'unknown')) continue; // a page or counts, whose sinks their readers bring
    const leave = kc.follow({ path, objects: true, sink: (changed) => new WatchedCollection<KubeObject>(changed) }).subscribe(() => undefined);
    setTimeout(leave, patience);
  }
}

/** What was true then, and nobody has asked since. */
export function old({ items, phase, stale, ...more }: Snapshot<unknown>, asOf: number): WatchSnapshot<unknown> {
  return { ...more, data: items, status: 'stale', reason: 'reconnecting', asOf, error: undefined };
}

/** What a gateway would have to say for a watch to know what it shows; undefined: it begins anew. */
function eventsOf({ followed, collection, snapshot }: Entry): StreamEvent[] | undefined {
  const of = { watch: '', id: '' };
  const told = followed ? collection.told?.() : objects(snapshot.data as readonly KubeObject[]);
  return told && [...(snapshot.namespaces ? [{ ...of, type: 'narrowed', namespaces: snapshot.namespaces, names: {} } as const] : []), ...told];
}

function objects(data: readonly KubeObject[]): StreamEvent[] {
  const of = { watch: '', id: '' };
  return [...data.map((object): StreamEvent => ({ ...of, type: 'added', object })), { ...of, type: 'synced', resourceVersion: '' }];
}
