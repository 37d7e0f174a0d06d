// What the mock says of itself and its kinds: discovery, clusters, the version.

import type { MockCluster } from './cluster.ts';
import { schemasAt } from './schemas.ts';

/** What a cluster serves of it. */
export interface MockKind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** As rights and discovery name a kind: `pods`, `jobs.batch`. */
export const idOf = ({ group, plural }: Pick<MockKind, 'group' | 'plural'>): string => (group === '' ? plural : `${plural}.${group}`);

const verbs = ['get', 'list', 'watch'];

const singular = (kind: string): string => kind.toLowerCase();

/** The document at a path; undefined: there is none. @param aggregated in the form that has all groups at once */
export function documentAt(cluster: MockCluster, path: string, aggregated: boolean): object | undefined {
  const kinds = [...cluster.kinds.values()];
  const [root, ...rest] = path.slice(1).split('/');
  if (root === 'openapi') return schemasAt(cluster, rest.slice(1).join('/'));
  if (root === 'version') return { major: '1', minor: '34', gitVersion: 'v1.34.0-mock', platform: 'mock' };
  const groups = [...new Set(kinds.map(({ group }) => group))].filter((group) => (root === 'api') === (group === ''));
  if (rest.length === 0) {
    if (aggregated) return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items: groups.map((group) => groupIn(kinds, group)) };
    return root === 'api' ? { kind: 'APIVersions', versions: ['v1'] } : { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((group) => namesOf(kinds, group)) };
  }
  const [group, version] = root === 'api' ? ['', rest[0]] : rest;
  if (group === undefined || !groups.includes(group)) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...namesOf(kinds, group) };
  const of = kinds.filter((kind) => kind.group === group && kind.version === version);
  if (of.length === 0) return undefined;
  const resources = of.map(({ plural, kind, namespaced }) => ({ name: plural, singularName: singular(kind), namespaced, kind, verbs }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: group === '' ? version : `${group}/${version}`, resources };
}

const versionsOf = (kinds: readonly MockKind[], group: string): string[] => [...new Set(kinds.filter((kind) => kind.group === group).map(({ version }) => version))];

function namesOf(kinds: readonly MockKind[], name: string): object {
  const versions = versionsOf(kinds, name).map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions, preferredVersion: versions[0] };
}

function groupIn(kinds: readonly MockKind[], group: string): object {
  const versions = versionsOf(kinds, group).map((version) => ({
    version,
    freshness: 'Current',
    resources: kinds
      .filter((kind) => kind.group === group && kind.version === version)
      .map(({ plural, kind, namespaced }) => ({ resource: plural, responseKind: { group, version, kind }, scope: namespaced ? 'Namespaced' : 'Cluster', singularResource: singular(kind), verbs })),
  }));
  return { metadata: group === '' ? {} : { name: group }, versions };
}

/** A tag of what is answered. */
export function tagOf(text: string): string {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0;
  return `W/"mock.${text.length}.${sum.toString(36)}"`;
}
