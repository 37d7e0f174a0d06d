import type { Kubecast, KubeObject, PastJob } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import type { ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { parseView } from '../view/view.ts';
import { OwnerTree } from './OwnerTree.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const ref = (kind: string, apiVersion: string, uid: string): object => ({ apiVersion, kind, name: uid, uid, controller: true });
const object = (uid: string, ...ownerReferences: object[]): KubeObject => ({ metadata: { uid, name: uid, namespace: 'n', ownerReferences } }) as unknown as KubeObject;

const kind = (resource: string, name: string): object => ({ resource, responseKind: { kind: name }, scope: 'Namespaced', verbs: ['get', 'list', 'watch'] });
const groups = { items: [
  { metadata: { name: 'jobset.x-k8s.io' }, versions: [{ version: 'v1', resources: [kind('jobsets', 'JobSet')] }] },
  { metadata: { name: 'trainer.kubeflow.org' }, versions: [{ version: 'v1', resources: [kind('trainjobs', 'TrainJob')] }] },
  { metadata: { name: 'kueue.x-k8s.io' }, versions: [{ version: 'v1', resources: [kind('workloads', 'Workload')] }] },
] };

/** Answers what is asked for: discovery, what may be seen (all of it), and these. */
const answerAll = async (has: Record<string, object>): Promise<void> => {
  const answered = new Set<unknown>();
  for (let round = 0; round < 14; round++) {
    for (const request of server.requests.filter((one) => !answered.has(one))) {
      answered.add(request);
      const { pathname, searchParams } = new URL(request.url, 'http://x');
      const path = `${pathname}${searchParams.has('labelSelector') ? `?${searchParams.get('labelSelector') ?? ''}` : ''}${searchParams.has('view') ? `?${searchParams.get('view') ?? ''}` : ''}`;
      if (pathname === '/api') request.refuse(200, {}, '{"items":[]}');
      else if (pathname === '/apis') request.refuse(200, {}, JSON.stringify(groups));
      else if (pathname === '/auth/me') request.refuse(200, {}, '{"clusters":[{"default":true,"watch":[]}]}');
      else if (has[path]) request.refuse(200, {}, JSON.stringify(has[path]));
      else request.refuse(404, {}, '{}');
    }
    await pass(50);
  }
};
const show = (job: KubeObject | undefined, past?: Partial<PastJob>): void => {
  const known = past && ({ namespace: 'n', name: 'train', uid: 'j', queue: '', pods: [], ...past } as PastJob);
  page = render(
    <KubecastProvider client={kc}>
      <OwnerTree namespace="n" name="train" uid="j" job={job} past={known} pods={[]} view={parseView('#jobs/n/train@j')} />
    </KubecastProvider>,
  );
};
const lines = (): string[] => [...page.element.querySelectorAll('li')].map((one) => [...one.childNodes].filter((child) => child.nodeName !== 'UL').map((child) => child.textContent).join('').trim());
const links = (): (string | null)[] => [...page.element.querySelectorAll('a')].map((one) => one.getAttribute('href'));

test('what a job belongs to is told up to the topmost, with what let it in and its pods, those that are gone too', async () => {
  show(object('j', ref('JobSet', 'jobset.x-k8s.io/v1', 'set')), { queue: 'q', pods: [{ uid: 'p', name: 'train-0', namespace: 'n', node: 'n1', restarts: 0, message: '', reason: 'Error', createdAt: 1, startedAt: 2, endedAt: 3 }] as never });
  await answerAll({
    '/apis/jobset.x-k8s.io/v1/namespaces/n/jobsets/set': object('set', ref('TrainJob', 'trainer.kubeflow.org/v1', 'tune')),
    '/apis/trainer.kubeflow.org/v1/namespaces/n/trainjobs/tune': object('tune'),
    '/apis/kueue.x-k8s.io/v1/namespaces/n/workloads?kueue.x-k8s.io/job-uid in (j,tune,set)': { items: [object('w')] },
  });
  expect(lines()).toEqual(['TrainJob tune', 'JobSet set', 'Job train', 'Workload w', 'Pod train-0']);
  expect(links()).toEqual(['#kinds/trainjobs.trainer.kubeflow.org/n/tune', '#kinds/jobsets.jobset.x-k8s.io/n/set', '#kinds/workloads.kueue.x-k8s.io/n/w']);
});

test('an owner that is gone, or whose name another object has now, ends the way up', async () => {
  show(object('j', ref('JobSet', 'jobset.x-k8s.io/v1', 'set')));
  await answerAll({ '/apis/jobset.x-k8s.io/v1/namespaces/n/jobsets/set': { metadata: { ...object('set', ref('TrainJob', 'trainer.kubeflow.org/v1', 'tune')).metadata, uid: 'another' } } });
  expect(lines()).toEqual(['JobSet set', 'Job train']);
});

test('of a job that is gone what is kept says what it belonged to, and a kind that is not served has no link', async () => {
  show(undefined, { spec: true });
  await answerAll({ '/history/apis/batch/v1/namespaces/n/jobs/train?spec': object('j', ref('Widget', 'example.org/v1', 'w')) });
  expect(lines()).toEqual(['Widget w', 'Job train']);
  expect(links()).toEqual([]);
});

test('a job that belongs to nothing has no tree, and a circle of owners ends', async () => {
  show(object('j'));
  await answerAll({});
  expect(page.element.textContent).toBe('');
  page.unmount();
  show(object('j', ref('JobSet', 'jobset.x-k8s.io/v1', 'set')));
  await answerAll({ '/apis/jobset.x-k8s.io/v1/namespaces/n/jobsets/set': object('set', ref('JobSet', 'jobset.x-k8s.io/v1', 'set')) });
  expect(lines()).toHaveLength(9);
});
