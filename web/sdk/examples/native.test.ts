// React Native as far as it can be had without a device: no document, its own AbortController, a fetch that is given.
import { AbortController as Without, AbortSignal as WithoutSignal } from 'abort-controller';
import { createElement, type FunctionComponent } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, test, vi } from 'vitest';
import type { Kubecast, Resource, KubeObject } from '@kubecast/sdk';
import { MockGateway } from '../../mock/index.ts';
import { answers } from './standins/expo-fetch.ts';
import { AppState, change } from './standins/react-native.ts';

const patiently = { timeout: 60_000, interval: 10 };

test('an app goes on after cuts and silence, where signals have no reason, and sleeps in the background', async () => {
  expect(new Without().signal).not.toHaveProperty('reason');
  vi.stubGlobal('AbortController', Without);
  vi.stubGlobal('AbortSignal', WithoutSignal);
  vi.stubGlobal('navigator', { product: 'ReactNative' });
  const gateway = new MockGateway();
  answers.by = gateway.fetch;
  const { tokens } = (await import('guide:react-native/tokens.ts')) as unknown as { tokens: { current: () => Promise<string> } };
  tokens.current = () => Promise.resolve('let-me-in');
  const { kc, leave } = (await import('guide:react-native/kc.ts')) as unknown as { kc: Kubecast; leave: () => void };
  const { jobs } = (await import('guide:react-native/kubernetes.ts')) as unknown as { jobs: Resource<KubeObject> };
  const { Jobs } = (await import('guide:react-native/Jobs.tsx')) as unknown as { Jobs: FunctionComponent<{ team: string }> };
  const { KubecastProvider } = await import('@kubecast/sdk/react');

  const watch = kc.watch(jobs, { namespace: 'team-a', fields: ['status.active'] });
  const stop = watch.subscribe(() => undefined);
  const put = (name: string) => gateway.cluster.put('jobs', { metadata: { name, namespace: 'team-a' }, status: { active: 1 } });
  const shows = (...names: string[]) => expect.poll(() => [watch.getSnapshot().reason ?? watch.getSnapshot().status, ...watch.getSnapshot().data.map(({ metadata }) => metadata.name)], patiently).toEqual(names);
  put('one');
  await shows('live', 'one');
  gateway.cutAll();
  put('two');
  await shows('live', 'one', 'two');
  // Its attempt is broken off, with a reason that the signal does not keep.
  kc.pause();
  await shows('paused', 'one', 'two');
  await expect.poll(() => gateway.streams.size, patiently).toBe(0);
  put('three');
  kc.resume();
  await shows('live', 'one', 'two', 'three');
  const aborted = new AbortController();
  aborted.abort();
  await expect(kc.request('/nowhere', { signal: aborted.signal }, () => 0)).rejects.toThrow('aborted');

  expect(renderToString(createElement(KubecastProvider, { client: kc }, createElement(Jobs, { team: 'team-a' })))).toContain('loading'); // as on a server

  change('background');
  await shows('paused', 'one', 'two', 'three');
  change('active');
  await shows('live', 'one', 'two', 'three');
  expect(AppState.currentState).toBe('active');
  leave();
  stop();
  kc.close();
  vi.unstubAllGlobals();
});
