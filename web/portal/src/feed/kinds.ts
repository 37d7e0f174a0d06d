import type { KubeObject } from '@kubecast/sdk';
import { jobFields, type Job } from '../jobs/job.ts';
import { podFields, type Pod } from '../pods/pod.ts';

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

/** The tables, of which one is on screen. */
export type TableName = Exclude<WatchName, 'namespaces'>;

export const tableNames: readonly TableName[] = ['jobs', 'pods'];

/** The paths of all watches. */
export function pathsOf(namespace: string): Record<WatchName, string> {
  const scope = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  const only = (fields: readonly string[]): string => `?${new URLSearchParams({ fields: fields.join() }).toString()}`;
  return {
    jobs: `/apis/batch/v1/${scope}jobs${only(jobFields)}`,
    pods: `/api/v1/${scope}pods${only(podFields)}`,
    namespaces: `/api/v1/namespaces${only(['metadata.name'])}`,
  };
}
