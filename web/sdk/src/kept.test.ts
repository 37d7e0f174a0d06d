import { expect, test } from 'vitest';
import { AskedError, createKubecast, defineResource, pastLog, pastSpec, type Kubecast, type KubeObject } from './index.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const one = { namespace: 'n', name: 'train', uid: 'u/1 2' };

/** A client whose requests are answered so, and what they were. */
function answering(status: number, body: string): { readonly kc: Kubecast; readonly asked: string[] } {
  const asked: string[] = [];
  const kc = createKubecast({
    gateway: 'http://kubecast',
    fetch: (url, init) => {
      asked.push(`${new Headers(init?.headers).get('Accept') ?? ''} ${new Request(url).url}`);
      return Promise.resolve(new Response(body, { status }));
    },
  });
  return { kc, asked };
}

test('what is kept of a job is asked for by its name and uid, and is what was kept', async () => {
  const spec = answering(200, '{"kind":"Job","metadata":{"name":"train"}}');
  expect(await pastSpec(spec.kc, jobs, one)).toEqual({ kind: 'Job', metadata: { name: 'train' } });
  expect(spec.asked[0]).toContain('http://kubecast/history/apis/batch/v1/namespaces/n/jobs/train?uid=u%2F1+2&view=spec');
  const log = answering(200, '{"not":"json, but a line"}\n<b>');
  expect(await pastLog(log.kc, jobs, { ...one, cluster: 'east' })).toBe('{"not":"json, but a line"}\n<b>');
  expect(log.asked).toEqual(['text/plain http://kubecast/history/clusters/east/apis/batch/v1/namespaces/n/jobs/train?uid=u%2F1+2&view=log']);
  await pastLog(log.kc, jobs, { ...one, pod: 'p/1' });
  expect(log.asked[1]).toBe('text/plain http://kubecast/history/apis/batch/v1/namespaces/n/jobs/train?uid=u%2F1+2&view=log&pod=p%2F1');
});

test('that nothing is kept is no failure, and that it may not be seen is one', async () => {
  const none = answering(404, '{"title":"Not Found","status":404,"detail":"there is no such job"}');
  expect(await pastSpec(none.kc, jobs, one)).toBeUndefined();
  expect(await pastLog(none.kc, jobs, one)).toBeUndefined();
  const refused = answering(403, '{"title":"Forbidden","status":403,"detail":"pods/log is forbidden","reason":"Forbidden"}');
  await expect(pastLog(refused.kc, jobs, one)).rejects.toMatchObject({ status: 403, message: 'pods/log is forbidden', reason: 'Forbidden' });
  await expect(pastSpec(refused.kc, jobs, one)).rejects.toBeInstanceOf(AskedError);
});
