// Aborting with a reason, where AbortController keeps none: React Native's does not, and its signals cannot throw.

const reasons = new WeakMap<AbortSignal, unknown>();

/** Whoever listens finds the reason by {@link reasonOf}. */
export function abort(controller: AbortController, reason: unknown): void {
  if (!controller.signal.aborted) reasons.set(controller.signal, reason);
  controller.abort(reason);
}

/** Why it is aborted; always something that can be thrown. */
export function reasonOf(signal: AbortSignal): unknown {
  return (signal.reason as unknown) ?? reasons.get(signal) ?? new Error('aborted');
}

/** Calls `then` with the reason when `signal` is aborted, at once if it is; what it returns takes that back. */
export function onAbort(signal: AbortSignal | null | undefined, then: (reason: unknown) => void): () => void {
  const tell = (): void => then(signal && reasonOf(signal));
  if (signal?.aborted) tell();
  signal?.addEventListener('abort', tell);
  return () => signal?.removeEventListener('abort', tell);
}

/** Is aborted with its parent, for the same reason, at the latest. */
export function childOf(parent: AbortSignal | null | undefined): AbortController {
  const child = new AbortController();
  onAbort(child.signal, onAbort(parent, (reason) => abort(child, reason)));
  return child;
}
