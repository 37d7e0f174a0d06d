import { defineResource, type KubeObject } from '@kubecast/sdk';
import { createWatch } from '@kubecast/sdk/solid';
import { For, Show } from 'solid-js';
import html from 'solid-js/html';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

export function RunningJobs(props: { readonly team: string }) {
  const running = createWatch(jobs, () => ({ namespace: props.team, where: 'status.active!=' }));
  return html`<${Show} when=${() => running().status !== 'loading'} fallback=${() => html`<p>Loading</p>`}>
    <ul data-status=${() => running().status}>
      <${For} each=${() => running().data}>${(job: KubeObject) => html`<li>${job.metadata.name}</li>`}</>
    </ul>
  </>`;
}
