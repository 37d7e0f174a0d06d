// The forms in which the mock answers lists and objects: as they are, their metadata, and tables.

import type { KubeObject } from '@kubecast/sdk';
import { BadQuery } from './query.ts';

export type Form = 'whole' | 'metadata' | 'table';

/** A column of a kind's tables, beside its name and its age. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly value: (object: KubeObject) => unknown;
}

/** Which form an `Accept` chooses; undefined: none that there is. */
export function formOf(accept: string): Form | undefined {
  const wanted = (accept === '' ? '*/*' : accept).split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const of = Object.fromEntries(parameters.map((parameter) => parameter.split('=', 2))) as Record<string, string>;
    return { type, as: of.as ?? '', quality: Number(of.q ?? 1) };
  });
  const forms = wanted.filter(({ type, quality }) => quality > 0 && /^(application\/json|application\/\*|\*\/\*)$/.test(type)).sort((a, b) => b.quality - a.quality);
  for (const { as } of forms) {
    if (as === '') return 'whole';
    if (as === 'Table') return 'table';
    if (/^PartialObjectMetadata(List)?$/.test(as)) return 'metadata';
  }
  return undefined;
}

const metadataOf = ({ metadata }: KubeObject): object => ({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata });

/** @param one a single object, and no list of it */
export function inForm(form: Form, objects: readonly KubeObject[], metadata: object, { one, columns, include }: { readonly one: boolean; readonly columns: readonly Column[]; readonly include: string }): object {
  const [first] = objects;
  if (form === 'metadata') return one && first ? metadataOf(first) : { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata, items: objects.map(metadataOf) };
  const carried = { None: () => undefined, Metadata: metadataOf, Object: (object: KubeObject) => object }[include === '' ? 'Metadata' : include];
  if (!carried) throw new BadQuery(`includeObject: ${JSON.stringify(include)} is not None, Metadata or Object`);
  const all: readonly Column[] = [{ name: 'Name', type: 'string', value: (object) => object.metadata.name }, ...columns, { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp }];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: all.map(({ name, type }, n) => ({ name, type, format: n === 0 ? 'name' : '', description: '', priority: 0 })),
    rows: objects.map((object) => ({ cells: all.map(({ type, value }) => (type === 'date' ? ageOf(value(object)) : (value(object) ?? null))), object: carried(object) })),
  };
}

function ageOf(time: unknown): string {
  const seconds = typeof time === 'string' ? (Date.now() - Date.parse(time)) / 1_000 : NaN;
  if (Number.isNaN(seconds)) return '<unknown>';
  const [length, unit] = ([[86_400, 'd'], [3_600, 'h'], [60, 'm']] as const).find(([least]) => seconds >= 2 * least) ?? [1, 's'];
  return `${Math.max(0, Math.floor(seconds / length))}${unit}`;
}
