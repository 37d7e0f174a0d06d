// Names of schemas and kinds as identifiers of TypeScript: short where that is clear, longer where two would be called the same.

import { compare, type Kind } from './openapi.ts';

/** Part of each stored object's metadata, beside what its schema says. */
export const storedMeta = 'StoredMeta';

/** Words that no constant can be called, of those that a plural can be. */
const reserved = new Set(
  'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield'.split(' '),
);

const pascal = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

const identifier = (text: string): string => (/^[A-Za-z]/.test(text) ? text : `_${text}`);

/**
 * By schema name, such as `io.k8s.api.batch.v1.Job`. Of two with one last part the one of Kubernetes itself stays the short one; others
 * are named with their group and version, and as much of what stands before as it takes.
 */
export function typeNames(schemas: readonly string[]): Map<string, string> {
  const long = (schema: string, parts: number): string => identifier(pascal(schema.split('.').slice(-parts).join('.')));
  return distinct(schemas, {
    short: (schema) => long(schema, 1),
    long: (schema, n) => long(schema, n + 2),
    own: (schema) => schema.startsWith('io.k8s.'),
    taken: [storedMeta],
  });
}

/** By kind: `jobs`, or of two the one that is not Kubernetes' own `batchVolcanoShJobs`. */
export function constantNames(kinds: readonly Kind[]): Map<Kind, string> {
  const camel = (text: string): string => identifier(text.charAt(0).toLowerCase() + text.slice(1));
  const versions = (kind: Kind): boolean => kinds.some((other) => other !== kind && other.group === kind.group && other.plural === kind.plural);
  return distinct(kinds, {
    short: ({ plural }) => {
      const name = camel(pascal(plural));
      return reserved.has(name) ? `${name}Resource` : name;
    },
    long: (kind, n) => camel(pascal(`${kind.group || 'core'} ${n > 1 || versions(kind) ? kind.version : ''} ${kind.plural}`)),
    own: ({ schema }) => schema.startsWith('io.k8s.'),
    taken: ['defineResource'],
  });
}

interface Naming<T> {
  readonly short: (one: T) => string;
  /** With so many more parts, from 1. */
  readonly long: (one: T, parts: number) => string;
  /** It is Kubernetes' own, and goes by its short name if no other such does. */
  readonly own: (one: T) => boolean;
  readonly taken: readonly string[];
}

function distinct<T>(all: readonly T[], { short, long, own, taken }: Naming<T>): Map<T, string> {
  const names = new Map<T, string>();
  const groups = grouped(all, short);
  const clear = (one: T): boolean => {
    const group = groups.get(short(one)) ?? [];
    return !taken.includes(short(one)) && (group.length === 1 || (own(one) && group.filter(own).length === 1));
  };
  const used = new Set(taken);
  for (const one of all.filter(clear)) {
    names.set(one, short(one));
    used.add(short(one));
  }
  for (const one of all.filter((other) => !clear(other))) {
    let [parts, name] = [1, long(one, 1)];
    const others = all.filter((other) => other !== one);
    while (parts < 12 && (used.has(name) || others.some((other) => !clear(other) && long(other, parts) === name))) name = long(one, ++parts);
    while (used.has(name)) name += '_';
    names.set(one, name);
    used.add(name);
  }
  return names;
}

export const sorted = (names: Iterable<string>): string[] => [...names].sort(compare);

function grouped<T>(all: readonly T[], by: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(by(one), [...(groups.get(by(one)) ?? []), one]);
  return groups;
}
