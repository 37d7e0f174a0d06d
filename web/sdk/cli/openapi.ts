// What is read of OpenAPI documents as Kubernetes writes them. Everything may be missing: they come from a server.

import { CommandError } from './error.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface Operation {
  readonly 'x-kubernetes-action'?: string;
  readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind;
}

export interface Document {
  readonly paths?: Readonly<Record<string, { readonly get?: Operation }>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

/** What the keys of a schema hold, wherever they stand but among the names of properties. */
const forms: Readonly<Record<string, (value: unknown) => boolean>> = {
  $ref: (value) => typeof value === 'string',
  description: (value) => typeof value === 'string',
  properties: isObject,
  items: isObject,
  required: Array.isArray,
  allOf: (value) => Array.isArray(value) && value.every(isObject),
  anyOf: (value) => Array.isArray(value) && value.every(isObject),
  oneOf: (value) => Array.isArray(value) && value.every(isObject),
  enum: Array.isArray,
  'x-kubernetes-group-version-kind': (value) => Array.isArray(value) && value.every(isObject),
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A document, if it is one as far as it is read here. Else a {@link CommandError} says where it is not. */
export function documentOf(value: unknown, from: string): Document {
  const wrong = (at: string): never => {
    throw new CommandError(`${from} is no document of kinds as Kubernetes writes them: what is at ${at} is nothing that can stand there`);
  };
  const names = (holder: unknown, at: string, look: (value: Record<string, unknown>, at: string) => void): void => {
    if (holder === undefined) return;
    if (!isObject(holder)) return wrong(at);
    for (const [name, inner] of Object.entries(holder)) {
      if (isObject(inner)) look(inner, `${at}.${name}`);
      else wrong(`${at}.${name}`);
    }
  };
  const schema = (one: Record<string, unknown>, at: string): void => {
    for (const [key, is] of Object.entries(forms)) if (key in one && !is(one[key])) wrong(`${at}.${key}`);
    names(one.properties, `${at}.properties`, schema);
    for (const key of ['items', 'additionalProperties']) if (isObject(one[key])) schema(one[key], `${at}.${key}`);
    for (const key of ['allOf', 'anyOf', 'oneOf']) for (const [n, part] of ((one[key] ?? []) as Record<string, unknown>[]).entries()) schema(part, `${at}.${key}[${n}]`);
  };
  if (!isObject(value)) return wrong('its beginning');
  names(value.paths, 'paths', ({ get }, at) => {
    if (get !== undefined && (!isObject(get) || ('x-kubernetes-group-version-kind' in get && !isObject(get['x-kubernetes-group-version-kind'])))) wrong(`${at}.get`);
  });
  if (value.components !== undefined) names(isObject(value.components) ? value.components.schemas : wrong('components'), 'components.schemas', schema);
  return value;
}

/** A kind that can be listed. */
export interface Kind extends GroupVersionKind {
  readonly plural: string;
  readonly namespaced: boolean;
  /** The name of its objects' schema. */
  readonly schema: string;
}

const listPath = /^\/api(?:s\/[^/]+)?\/[^/]+\/(namespaces\/\{namespace\}\/)?([^/{}]+)$/;

/** The kinds of which documents tell, in order of their names. */
export function kindsOf(documents: readonly Document[]): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const { paths = {}, components } of documents) {
    const schemas = schemasByKind(components?.schemas ?? {});
    for (const [path, { get }] of Object.entries(paths)) {
      const match = listPath.exec(path);
      const of = get?.['x-kubernetes-group-version-kind'];
      const schema = of && schemas.get(nameOf(of));
      if (!match?.[2] || get?.['x-kubernetes-action'] !== 'list' || !schema) continue;
      const { group, version, kind } = of;
      const key = `${match[2]}.${version}.${group}`;
      const namespaced = match[1] !== undefined || (kinds.get(key)?.namespaced ?? false);
      kinds.set(key, { group, version, kind, plural: match[2], namespaced, schema });
    }
  }
  return [...kinds.values()].sort((a, b) => compare(a.group, b.group) || compare(a.plural, b.plural) || byPriority(a.version, b.version));
}

const nameOf = ({ group, version, kind }: GroupVersionKind): string => `${group}/${version}/${kind}`;

function schemasByKind(schemas: Readonly<Record<string, Schema>>): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, schema] of Object.entries(schemas)) {
    for (const kind of schema['x-kubernetes-group-version-kind'] ?? []) found.set(nameOf(kind), name);
  }
  return found;
}

/** By code units: the same on every machine. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** As Kubernetes orders versions: stable ones first, then beta, then alpha, the newest first of each. */
export function byPriority(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
    if (!match) return [3, 0, 0];
    return [match[2] === undefined ? 0 : match[2] === 'beta' ? 1 : 2, -Number(match[1]), -Number(match[3] ?? 0)];
  };
  const [left, right] = [rank(a), rank(b)];
  const at = left.findIndex((part, n) => part !== right[n]);
  return at === -1 ? compare(a, b) : (left[at] ?? 0) - (right[at] ?? 0);
}
