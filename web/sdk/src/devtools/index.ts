/**
 * What a page follows, what came, and what happens if that goes wrong: a panel for developers, which costs a page nothing until it is loaded.
 *
 * ```ts
 * const { mountDevtools } = await import('@kubecast/sdk/devtools');
 * const close = mountDevtools(kc);
 * ```
 *
 * - {@link mountDevtools}: the panel, which wraps the page's `fetch` as long as it is there.
 * - {@link Devtools}: what it knows and does, without the panel.
 *
 * @packageDocumentation
 */

export { Devtools, type DevtoolsOptions, type SeenFrame, type SeenReset, type SeenStream } from './devtools.ts';
export { type Lasting, type Once } from './faults.ts';
export { mountDevtools } from './mount.ts';
