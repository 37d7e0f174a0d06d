// What is read of OpenAPI documents as Kubernetes writes them. Everything may be missing: they come from a server.

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
