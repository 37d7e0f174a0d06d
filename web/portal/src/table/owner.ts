import type { ObjectMeta } from '@kubecast/sdk';

const key = 'kubecast.io/owner';

/** Who is told of an object's fate: a label, else an annotation (names that no label can hold). */
export function ownerOf(metadata: ObjectMeta): string {
  return metadata.labels?.[key] ?? metadata.annotations?.[key] ?? '';
}

/** Paths of what every row shows, beside what the gateway always tells; a dot within a key is escaped. */
export const rowFields: readonly string[] = [
  'metadata.creationTimestamp',
  'metadata.deletionTimestamp',
  'metadata.labels.kubecast\\.io/owner',
  'metadata.annotations.kubecast\\.io/owner',
];
