// As much of Expo as the guide needs: a fetch that streams, and knows nothing of signals but that they are aborted.
const Native = AbortController;
export const answers: { by: typeof globalThis.fetch } = { by: globalThis.fetch };

export const fetch: typeof globalThis.fetch = async (input, { signal, ...init } = {}) => {
  const native = new Native();
  signal?.addEventListener('abort', () => native.abort());
  return answers.by(input, { ...init, signal: native.signal });
};
