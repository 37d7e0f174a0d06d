// What a job of a history says beside its state, and how it is asked for.

import { expect, test } from 'vitest';
import { pastJobs } from './history.ts';
import type { Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

test('parts are asked for by what they are parts of, and say that and how far they are', async () => {
  let asked = '';
  const parent = { resource: 'jobsets.jobset.x-k8s.io', name: 'set', uid: 's' };
  const items = [{ uid: 'a', progress: { done: 3, of: 7 }, parent, children: 2 }, { uid: 'b', progress: null, parent: null }];
  const request = (path: string, _: RequestInit, read: (response: Response) => unknown): Promise<unknown> => {
    asked = path;
    return Promise.resolve(read(new Response(JSON.stringify({ items, continue: '' }))));
  };
  const { items: told } = await pastJobs({ request } as unknown as Kubecast, jobs, { parent: 's' });
  expect(asked).toBe('/history/apis/batch/v1/jobs?parent=s');
  expect(told[0]).toMatchObject({ progress: { done: 3, of: 7 }, parent, children: 2 });
  expect(told[1]).toMatchObject({ progress: undefined, parent: undefined, children: 0 });
});
