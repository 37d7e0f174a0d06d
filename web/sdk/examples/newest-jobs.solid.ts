import { defineResource, type KubeObject } from '@kubecast/sdk';
import { createAccess, createCount, createLivePage, createObject } from '@kubecast/sdk/solid';
import html from 'solid-js/html';

type Job = KubeObject & { readonly status?: { readonly active?: number } };
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });

/** A page of all jobs, how many are active, and one of them. */
export function NewestJobs(props: { readonly offset: number }) {
  const page = createLivePage(jobs, () => ({ sort: ['-metadata.creationTimestamp'], limit: 1, offset: props.offset }));
  const active = createCount(jobs, ['status.active']);
  const train = createObject(jobs, () => ({ namespace: 'a', name: 'train', fields: ['status.active'] }));
  const logs = createAccess(pods, () => ({ namespace: 'a', verb: 'get', subresource: 'log' }));
  return html`<p>${() =>
    [
      `${page().status}: ${page().data.map((job) => job.metadata.name).join()} of ${page().total ?? '?'}`,
      active().data.map(({ value, count }) => `${value}×${count}`).join(),
      train().data?.metadata.name ?? 'none',
      logs().data?.allowed ? 'logs' : 'no logs',
    ].join('; ')}</p>`;
}
