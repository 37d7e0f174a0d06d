// The guide's example as it stands there: what was shown is there again without a gateway, until its user signs out.
import 'fake-indexeddb/auto';
import { expect, test, vi } from 'vitest';
import { defineResource, type Kubecast, type KubeObject } from '@kubecast/sdk';
import { MockGateway } from '@kubecast/sdk/testing';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

test('rows are there again, and not for who signs in after a sign-out', async () => {
  const { open } = await import('guide:offline/open.ts') as unknown as { open: (user: string, token: () => string) => Promise<{ kc: Kubecast; signOut: () => Promise<void> }> };
  const gateway = new MockGateway();
  vi.stubGlobal('fetch', gateway.fetch);
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  vi.stubGlobal('document', page);
  vi.stubGlobal('addEventListener', () => undefined);
  const token = (): string => 'let-me-in';
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' } });
  const first = await open('mara', token);
  first.kc.watch(jobs).subscribe(() => undefined);
  await vi.waitFor(() => expect(first.kc.watch(jobs).getSnapshot().status).toBe('live'), { timeout: 60_000 });
  page.visibilityState = 'hidden';
  page.dispatchEvent(new Event('visibilitychange'));
  gateway.away = true;
  gateway.cutAll();
  const shown = async (user: string): Promise<string[]> => {
    const { kc, signOut } = await open(user, token);
    const names = kc.watch(jobs).getSnapshot().data.map(({ metadata }) => metadata.name);
    kc.close();
    if (names.length > 0) await signOut();
    return names;
  };
  await vi.waitFor(async () => expect(await shown('mara')).toEqual(['train']), { timeout: 60_000 });
  expect(await shown('mara')).toEqual([]);
  first.kc.close();
  vi.unstubAllGlobals();
});
