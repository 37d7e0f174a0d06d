// Lists that grow page by page, of the real gateway: live ones, and the history.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKubecast, defineResource, infiniteListOf, pastOf, type KubeObject } from '@kubecast/sdk';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const lacking = missing({ [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const namespace = 'growing';

describe.skipIf(lacking !== undefined)(`the real gateway${lacking ? ` (${lacking})` : ''}`, () => {
  let kubecast: Kubecast;
  let token: string;
  const path = `/apis/batch/v1/namespaces/${namespace}/jobs`;
  const submit = (name: string): Promise<unknown> =>
    kubecast.api('POST', path, { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { suspend: true, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] } } } });

  beforeAll(async () => {
    kubecast = await Kubecast.start();
    token = await kubecast.token('mara.lindqvist', ['platform']);
    await kubecast.api('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    for (let n = 10; n < 22; n++) await submit(`job-${n}`);
  }, 300_000);
  afterAll(() => kubecast?.stop());

  test('a page more stands behind those that are there, and what comes and goes does so where it stands', async () => {
    const kc = createKubecast({ gateway: kubecast.url, token: () => token });
    const list = infiniteListOf(kc, jobs, { namespace, limit: 5, fields: [] });
    const past = pastOf(kc, jobs, { namespace, limit: 5 });
    const ends = [list, past].map(({ subscribe }) => subscribe(() => undefined));
    const names = (): string[] => list.getSnapshot().data.map(({ metadata }) => metadata.name);
    const recorded = (): string[] => past.getSnapshot().data.map(({ name }) => name);
    const to = async (rows: number, all: readonly string[]): Promise<void> => {
      await expect.poll(() => [list.getSnapshot().status, names()], { timeout: 60_000 }).toEqual(['live', all.slice(0, rows)]);
      await expect.poll(() => [past.getSnapshot().status, recorded().length], { timeout: 60_000 }).toEqual(['live', Math.min(rows, all.length)]);
      expect(new Set(recorded()).size).toBe(recorded().length);
    };
    const all = Array.from({ length: 12 }, (_, n) => `job-${n + 10}`);
    await to(5, all);
    for (const { fetchNextPage } of [list, past]) fetchNextPage();
    await to(10, all);
    await submit('job-00');
    await expect.poll(() => names()[0]).toBe('job-00');
    await expect.poll(() => recorded()[0]).toBe('job-00');
    await to(10, ['job-00', ...all]);
    for (const { fetchNextPage } of [list, past]) fetchNextPage();
    await to(15, ['job-00', ...all]);
    expect(list.getSnapshot()).toMatchObject({ total: 13, hasNextPage: false });
    expect(past.getSnapshot().hasNextPage).toBe(false);
    expect(recorded().sort()).toEqual(['job-00', ...all]);
    await kubecast.api('DELETE', `${path}/job-12?propagationPolicy=Background`);
    await expect.poll(names).toEqual(['job-00', ...all].filter((name) => name !== 'job-12'));
    await expect.poll(() => past.getSnapshot().data.find(({ name }) => name === 'job-12')?.state).toBe('Deleted');
    expect(recorded()).toHaveLength(13);
    ends.forEach((end) => end());
    kc.close();
  }, 300_000);
});
