// Where this runs, as far as it matters.

/** Pages are rendered, and nothing is followed. React Native has no document, either, but what it renders stays. */
export const isServer = !('document' in globalThis) && (globalThis.navigator as { product?: string } | undefined)?.product !== 'ReactNative';
