// The kinds that a cluster serves, by the gateway's discovery documents, and of which of them the user may see anything.

import { answerTo, mayWatch, watchable, type Kubecast } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect } from 'react';
import { clusterOf } from '../clusters/inCluster.ts';
import { Reading, useRead, type Read } from '../polling/polling.ts';

export interface Kind {
  /** As everywhere in the portal: `pods`, `deployments.apps`. */
  readonly id: string;
  /** Empty: the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** As its objects name it. */
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
}

/** Newer API servers first; one that knows neither is not asked group by group. */
const forms = ['v2', 'v2beta1'].map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`).join();

interface Discovery {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly responseKind?: { readonly kind?: string };
        readonly scope?: string;
        readonly shortNames?: readonly string[];
        readonly verbs?: readonly string[];
      }[];
    }[];
  }[];
}

/** Each kind at the version that the API server prefers, which comes first. */
export function kindsIn(document: unknown): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const { metadata, versions = [] } of (document as Discovery).items ?? []) {
    const group = metadata?.name ?? '';
    for (const { version, resources = [] } of versions) {
      for (const { resource: plural, responseKind, scope, shortNames = [], verbs = [] } of resources) {
        const id = group ? `${plural}.${group}` : plural;
        if (!verbs.includes('watch') || kinds.has(id)) continue;
        kinds.set(id, { id, group, version, plural, kind: responseKind?.kind ?? plural, namespaced: scope === 'Namespaced', shortNames });
      }
    }
  }
  return [...kinds.values()];
}

/** So many kinds may be asked about at once. */
const atOnce = 50;

/** Those of which something may be seen. What cannot be decided is among them: whoever goes there is told. */
async function visible(kc: Kubecast, kinds: readonly Kind[]): Promise<Kind[]> {
  const parts = Array.from({ length: Math.ceil(kinds.length / atOnce) }, (_, n) => kinds.slice(n * atOnce, (n + 1) * atOnce));
  const ask: typeof fetch = (path, init = {}) => kc.request(path as string, init, (response) => response);
  const said = await Promise.all(parts.map((part) => watchable({ kinds: part.map(({ id }) => id), cluster: clusterOf(kc), fetch: ask })));
  return kinds.filter((_, n) => {
    const one = said[Math.floor(n / atOnce)]?.[n % atOnce];
    return one !== undefined && (one.unknown || mayWatch(one, ''));
  });
}

/** The API groups that a cluster serves beside the core one, whatever of them may be seen. */
export async function groupsOf(kc: Kubecast): Promise<readonly string[]> {
  const { items = [] } = (await answerTo(kc, '/apis', { headers: { Accept: forms } })) as Discovery;
  return items.flatMap(({ metadata }) => metadata?.name ?? []);
}

async function discover(kc: Kubecast): Promise<readonly Kind[]> {
  const documents = await Promise.all(['/api', '/apis'].map((path) => answerTo(kc, path, { headers: { Accept: forms } })));
  const [core = [], groups = []] = documents.map(kindsIn);
  // An event has two names.
  const all = [...core, ...groups.filter(({ id }) => id !== 'events.events.k8s.io')];
  return visible(kc, all);
}

const known = new WeakMap<Kubecast, Reading<readonly Kind[]>>();

function readingOf(kc: Kubecast): Reading<readonly Kind[]> {
  const reading = known.get(kc) ?? new Reading(() => discover(kc), 10_000);
  known.set(kc, reading);
  return reading;
}

/** In milliseconds: whoever comes back after that may find kinds that were not there. */
const fresh = 60_000;

export interface Kinds extends Read<readonly Kind[]> {
  readonly retry: () => void;
}

/** Read once for all who ask, and again now and then, when somebody comes to it. */
export function useKinds(): Kinds {
  const reading = readingOf(useKubecast());
  useEffect(() => {
    const { at } = reading.getSnapshot();
    if (at !== undefined && Date.now() - at > fresh) reading.ask();
  }, [reading]);
  return useRead(reading);
}

/** The kind of an object, by how its owner reference or an event names it. */
export function kindNamed(kinds: readonly Kind[] | undefined, apiVersion: string, kind: string): Kind | undefined {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return kinds?.find((one) => one.group === group && one.kind === kind);
}
