// Schemas of the mock's kinds, as far as the objects show them that were put into it: enough for `kubecast types`, which writes from them what such objects have.

import type { KubeObject } from '@kubecast/sdk';
import type { MockCluster } from './cluster.ts';
import type { MockKind } from './documents.ts';

type Schema = Readonly<Record<string, unknown>>;

const string = { type: 'string' };
const texts = { type: 'object', additionalProperties: string };
const metadataName = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const reference = { type: 'object', required: ['apiVersion', 'kind', 'name', 'uid'], properties: { apiVersion: string, kind: string, name: string, uid: string, controller: { type: 'boolean' } } };
const ofMetadata = {
  type: 'object',
  properties: {
    ...Object.fromEntries(['name', 'namespace', 'uid', 'resourceVersion', 'generateName', 'creationTimestamp', 'deletionTimestamp'].map((key) => [key, string])),
    ...{ labels: texts, annotations: texts, ownerReferences: { type: 'array', items: reference } },
  },
};

/** The document at a path below `/openapi/v3/`, or for an empty one the index of them; undefined: there is none. */
export function schemasAt(cluster: MockCluster, path: string): object | undefined {
  const kinds = [...cluster.kinds.values()];
  const groups = new Set(kinds.map(pathOf));
  if (path === '') return { paths: Object.fromEntries([...groups].map((of) => [of, { serverRelativeURL: `/openapi/v3/${of}` }])) };
  if (!groups.has(path)) return undefined;
  const of = kinds.filter((kind) => pathOf(kind) === path);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.34.0-mock' },
    paths: Object.assign({}, ...of.map((kind) => listsOf(kind, path))) as object,
    components: { schemas: { [metadataName]: ofMetadata, ...Object.fromEntries(of.map((kind) => [`mock.${kind.group || 'core'}.${kind.version}.${kind.kind}`, schemaOf(cluster, kind)])) } },
  };
}

const pathOf = ({ group, version }: MockKind): string => (group === '' ? `api/${version}` : `apis/${group}/${version}`);
const groupVersionKind = ({ group, version, kind }: MockKind): object => ({ group, version, kind });

function listsOf(kind: MockKind, path: string): object {
  const get = { get: { 'x-kubernetes-action': 'list', 'x-kubernetes-group-version-kind': groupVersionKind(kind) } };
  return { [`/${path}/${kind.plural}`]: get, ...(kind.namespaced && { [`/${path}/namespaces/{namespace}/${kind.plural}`]: get }) };
}

function schemaOf(cluster: MockCluster, kind: MockKind): Schema {
  const objects = cluster.list(kind.plural, kind.group).map(({ apiVersion: _, kind: __, metadata: ___, ...rest }: KubeObject) => rest);
  const { properties = {} } = seenIn(objects) as { readonly properties?: object };
  const metadata = { allOf: [{ $ref: `#/components/schemas/${metadataName}` }] };
  return { type: 'object', properties: { apiVersion: string, kind: string, metadata, ...properties }, 'x-kubernetes-group-version-kind': [groupVersionKind(kind)] };
}

/** What all of these values have in common; an empty schema: nothing, or there is none. */
function seenIn(values: readonly unknown[]): Schema {
  const there = values.filter((value) => value !== undefined && value !== null);
  const types = new Set(there.map((value) => (Array.isArray(value) ? 'array' : typeof value)));
  const [type] = types;
  if (types.size === 2 && types.has('string') && types.has('number')) return { 'x-kubernetes-int-or-string': true };
  if (types.size !== 1 || type === undefined) return {};
  if (type === 'array') return { type, items: seenIn(there.flat()) };
  if (type !== 'object') return { type };
  const keys = new Set(there.flatMap((value) => Object.keys(value)));
  return { type, properties: Object.fromEntries([...keys].map((key) => [key, seenIn(there.map((value) => (value as Record<string, unknown>)[key]))])) };
}
