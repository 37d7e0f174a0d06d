import type { KubeObject } from '@kubecast/sdk';
import type { Job } from '../jobs/job.ts';
import type { Pod } from '../pods/pod.ts';

/** The watches of the portal's one stream, by the names they have on it. */
export type Kinds = {
  readonly jobs: Job;
  readonly pods: Pod;
  readonly namespaces: KubeObject;
};

export type WatchName = keyof Kinds;

export const watchNames: readonly WatchName[] = ['jobs', 'pods', 'namespaces'];

/** The kind of a watch, as the gateway is asked about it. */
export const kindOf = (name: WatchName): string => (name === 'jobs' ? 'jobs.batch' : name);

export function pathsOf(names: readonly WatchName[], namespace: string): { readonly [W in WatchName]?: string } {
  const scope = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  const paths: Record<WatchName, string> = {
    jobs: `/apis/batch/v1/${scope}jobs`,
    pods: `/api/v1/${scope}pods`,
    namespaces: '/api/v1/namespaces',
  };
  return Object.fromEntries(names.map((name) => [name, paths[name]]));
}
