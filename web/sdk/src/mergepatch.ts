import { isJsonObject, objectOf } from './object.ts';

/**
 * RFC 7386, without touching `target`: parts that the patch does not name are shared with the result,
 * so that a renderer can tell by identity what changed. Built from entries, because assigning a key
 * called `__proto__` would change the prototype instead.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map<string, unknown>(Object.entries(objectOf(target) ?? {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
