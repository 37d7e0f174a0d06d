// What is shown of an object as a text, and what of it is new.

import type { KubeObject } from '@kubecast/sdk';

/** Without what is only of use to the API server, and what the gateway has added. */
export function withoutNoise(object: KubeObject & { readonly $status?: string }): object {
  const { metadata, $status, ...rest } = object;
  const { managedFields, ...kept } = metadata as KubeObject['metadata'] & { managedFields?: unknown };
  const { apiVersion, kind, ...others } = rest;
  return { apiVersion, kind, metadata: kept, ...others };
}

/** What Kubernetes' own reader takes for something else although YAML 1.1 does not: what is a text has to be quoted all the same. */
const other = { default: true, tag: 'tag:kubecast.io,2026:other', test: /^(?:[-+]?0[box][0-9a-f_]+|=)$/i, resolve: (text: string): string => text } as const;

/** For `stringify`: Kubernetes reads YAML 1.1, for which `on` and `012` are no texts, and knows no references. */
export const asKubernetesReads = {
  lineWidth: 0,
  version: '1.1',
  aliasDuplicateObjects: false,
  customTags: (tags: readonly unknown[]) => [...tags, other] as never,
} as const;

/** The numbers of the lines that were not there before, by the longest common subsequence of the part in which the texts differ. */
export function changedLines(before: readonly string[], now: readonly string[]): Set<number> {
  let first = 0;
  while (first < now.length && now[first] === before[first]) first++;
  let last = 0;
  while (last < now.length - first && last < before.length - first && now[now.length - 1 - last] === before[before.length - 1 - last]) last++;
  const old = before.slice(first, before.length - last);
  const fresh = now.slice(first, now.length - last);
  const changed = new Set<number>();
  if (old.length * fresh.length > most) {
    for (let n = 0; n < fresh.length; n++) changed.add(first + n);
    return changed;
  }
  // common[i][j]: how many lines the rests from i and from j have in common.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    const row = common[i];
    if (!row) continue;
    for (let j = fresh.length - 1; j >= 0; j--) row[j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  for (let i = 0, j = 0; j < fresh.length;) {
    if (i < old.length && old[i] === fresh[j]) {
      i++;
      j++;
    } else if (i < old.length && at(i + 1, j) >= at(i, j + 1)) i++;
    else changed.add(first + j++);
  }
  return changed;
}

/** Beyond so many pairs of lines, all between the first and the last difference counts as changed. */
const most = 1_000_000;
