import type { ObjectMeta } from '@kubecast/sdk';

const key = 'kubecast.io/owner';

/** Who is told of an object's fate: a label, else an annotation (names that no label can hold). */
export function ownerOf(metadata: ObjectMeta): string {
  return metadata.labels?.[key] ?? metadata.annotations?.[key] ?? '';
}
