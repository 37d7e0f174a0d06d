// What the SDK itself needs to know of a Kubernetes object. Everything else is the caller's type.

/** The metadata of an object, as far as the SDK reads it. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
}

/** Whose part an object is. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** What all objects have. Kinds add to it: see {@link defineResource}. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** Any JSON object. */
export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const objectOf = (value: unknown): JsonObject | undefined => (isJsonObject(value) ? value : undefined);

/** What `read` makes of each object of a list; undefined if it is none. */
export const listOf = <T>(value: unknown, read: (data: JsonObject) => T): T[] | undefined => (Array.isArray(value) ? value.filter(isJsonObject).map(read) : undefined);

/** What is said, if it is a text. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** In milliseconds since the epoch; undefined if the value is no text. */
export const time = (value: unknown): number | undefined => (typeof value === 'string' ? Date.parse(value) : undefined);

/** A JSON object from its text; undefined if that is none. */
export function parse(json: string): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(json));
  } catch {
    return undefined;
  }
}
