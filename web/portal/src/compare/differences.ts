// In what two objects differ, by path. Fields have no order, nor have lists whose parts have names; a command and its arguments have one.

import type { KubeObject } from '@kubecast/sdk';

export interface Difference {
  readonly path: string;
  /** Undefined: it is not there. */
  readonly here: string | undefined;
  readonly there: string | undefined;
}

/** What is another one in every object, or says the same as the rest. */
const noise = new Set([
  'status', 'metadata.uid', 'metadata.resourceVersion', 'metadata.creationTimestamp', 'metadata.generation', 'metadata.managedFields', 'metadata.deletionTimestamp', 'metadata.deletionGracePeriodSeconds',
  'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]',
  ...['metadata.labels', 'spec.selector.matchLabels', 'spec.template.metadata.labels'].flatMap((labels) => [`${labels}.controller-uid`, `${labels}["batch.kubernetes.io/controller-uid"]`]),
]);
/** Lists in which the order says something. */
const ordered = new Set(['command', 'args']);
/** What tells the parts of a list apart: the first that all of them have, each its own. */
const names = ['name', 'mountPath', 'devicePath', 'containerPort', 'key', 'ip', 'topologyKey', 'type'];

type Fields = Readonly<Record<string, unknown>>;

export function differences(here: KubeObject, there: KubeObject): readonly Difference[] {
  const found: Difference[] = [];
  compare('', here, there, found);
  return found;
}

function compare(path: string, here: unknown, there: unknown, found: Difference[]): void {
  if (noise.has(path) || canonical(here) === canonical(there)) return;
  if (isFields(here ?? there) && isFields(there ?? here) && (isFilled(here) || isFilled(there))) {
    const [one, other] = [(here ?? {}) as Fields, (there ?? {}) as Fields];
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)].sort())) compare(step(path, key), one[key], other[key], found);
  } else if (Array.isArray(here ?? there) && Array.isArray(there ?? here) && (isFilled(here) || isFilled(there))) {
    compareLists(path, (here ?? []) as readonly unknown[], (there ?? []) as readonly unknown[], found);
  } else {
    found.push({ path, ...texts(here, there) });
  }
}

function compareLists(path: string, here: readonly unknown[], there: readonly unknown[], found: Difference[]): void {
  const name = names.find((one) => isNamedBy(one, here) && isNamedBy(one, there));
  if (name !== undefined) {
    const [one, other] = [here, there].map((parts) => new Map((parts as readonly Fields[]).map((part) => [String(part[name]), part])));
    for (const key of new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])])) compare(`${path}[${key}]`, ...withoutName(name, one?.get(key), other?.get(key)), found);
    return;
  }
  const inOrder = ordered.has(path.slice(path.lastIndexOf('.') + 1));
  const [one, other] = inOrder ? withoutCommonRun(here, there) : withoutCommon(here, there);
  for (let n = 0; n < Math.max(one.length, other.length); n++) {
    const at = one[n]?.at ?? other[n]?.at;
    compare(`${path}[${inOrder ? String(at) : ''}]`, one[n]?.part, other[n]?.part, found);
  }
}

interface Placed {
  readonly at: number;
  readonly part: unknown;
}

/** What is left of each when what both have is taken away, wherever it stands. */
function withoutCommon(here: readonly unknown[], there: readonly unknown[]): [Placed[], Placed[]] {
  const left = new Map<string, Placed[]>();
  there.forEach((part, at) => left.set(canonical(part), [...(left.get(canonical(part)) ?? []), { at, part }]));
  const only = here.map((part, at) => ({ at, part })).filter(({ part }) => left.get(canonical(part))?.shift() === undefined);
  return [only, [...left.values()].flat().sort((a, b) => a.at - b.at)];
}

/** The same by the longest common subsequence. What lies between two parts that both have stands side by side. */
function withoutCommonRun(here: readonly unknown[], there: readonly unknown[]): [(Placed | undefined)[], (Placed | undefined)[]] {
  if (here.length * there.length > 250_000) return withoutCommon(here, there);
  const [a, b] = [here.map(canonical), there.map(canonical)];
  // common[i][j]: how much the rests from i and from j have in common.
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  const of = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    const row = common[i] ?? [];
    for (let j = b.length - 1; j >= 0; j--) row[j] = a[i] === b[j] ? of(i + 1, j + 1) + 1 : Math.max(of(i + 1, j), of(i, j + 1));
  }
  const one: (Placed | undefined)[] = [];
  const other: (Placed | undefined)[] = [];
  const level = (): void => {
    while (one.length < other.length) one.push(undefined);
    while (other.length < one.length) other.push(undefined);
  };
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      level();
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && of(i + 1, j) >= of(i, j + 1))) one.push({ at: i, part: here[i++] });
    else other.push({ at: j, part: there[j++] });
  }
  level();
  return [one, other];
}

/** A part that only one has is told by the rest of it: its name stands in the path. */
function withoutName(name: string, here: Fields | undefined, there: Fields | undefined): [unknown, unknown] {
  if (here && there) return [here, there];
  const { [name]: own, ...rest } = here ?? there ?? {};
  const part = Object.keys(rest).length > 0 ? rest : { [name]: own };
  return here ? [part, undefined] : [undefined, part];
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const isFilled = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** Whether each part of a list has another value of it. */
function isNamedBy(name: string, parts: readonly unknown[]): boolean {
  const values = parts.map((part) => (isFields(part) ? part[name] : undefined));
  return values.every((value) => typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') && new Set(values.map(String)).size === parts.length;
}

const step = (path: string, key: string): string => (/^[\w$-]+$/.test(key) ? (path ? `${path}.${key}` : key) : `${path}[${JSON.stringify(key)}]`);

/** The same text for what is the same. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isFields(value)) return value === undefined ? '' : typeof value === 'bigint' ? String(value) : JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
}

/** As they are read; in quotes if nothing else tells them apart. */
function texts(here: unknown, there: unknown): Pick<Difference, 'here' | 'there'> {
  const [one, other] = [here, there].map((value) => (typeof value === 'string' && value !== '' ? value : value === undefined ? undefined : canonical(value)));
  return one === other ? { here: canonical(here), there: canonical(there) } : { here: one, there: other };
}
