// A screen on a wall, which nobody touches for a day.

import type { Kubecast } from '@kubecast/sdk';
import { createKubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MockGateway } from '../../../mock/gateway.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { ServedClusters } from '../clusters/served.ts';
import { DatedByConnection } from '../connection/Dated.tsx';
import { parseView } from '../view/view.ts';
import { OverviewPage } from './OverviewPage.tsx';

const minute = 60_000;

let gateway: MockGateway;
let kc: Kubecast;
let page: Rendered;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 15) });
  gateway = new MockGateway();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0.5 });
});
afterEach(async () => {
  page.unmount();
  await vi.advanceTimersByTimeAsync(1_000); // the clock of all pages stops
  kc.close();
  gateway.cutAll();
  vi.useRealTimers();
});

const pass = (ms: number): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const show = async (hash = '#overview?tab=wall', clusters: readonly string[] = ['east']): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <ServedClusters value={clusters.map((name, n) => ({ name, default: n === 0, state: 'live' }))}>
        <DatedByConnection>
          <OverviewPage view={parseView(hash)} />
        </DatedByConnection>
      </ServedClusters>
    </KubecastProvider>,
  );
  await pass(minute);
};
const tile = (name: string): string | null | undefined => [...page.element.querySelectorAll('.tile')].find((one) => one.querySelector('.tile-name')?.textContent === name)?.querySelector('.tile-count')?.textContent;
const put = (name: string, phase: string): { readonly metadata: { readonly uid: string } } =>
  gateway.cluster.put('pods', { metadata: { name, namespace: 'a' }, ...{ $status: phase }, status: { phase } });
const alarm = (): string => page.element.querySelector('[role=alert]')?.textContent ?? '';

test('a wall that is left open for a day tells what is there, and grows in nothing', { timeout: 120_000 }, async () => {
  await show();
  expect(document.documentElement.dataset.wall).toBe('');
  const clock = page.element.querySelector('.wall-clock')?.textContent ?? '';
  expect([clock.match(/\d+:\d+/g)?.length, clock]).toEqual([1, expect.stringContaining('Jan')]);
  const measured: { readonly nodes: number; readonly timers: number; readonly streams: number }[] = [];
  for (let n = 1; n <= 24 * 12; n++) {
    const { metadata } = put(`p-${n}`, 'Running');
    if (n % 19 === 0) gateway.cutAll();
    await pass(5 * minute);
    if (n % 12 === 6) {
      expect(tile('Pods running')).toBe('1');
      expect(alarm()).toBe('');
    }
    gateway.cluster.remove('pods', metadata.uid);
    gateway.cluster.compact();
    gateway.requests.length = 0;
    if (n % 12 === 0) {
      await pass(minute);
      measured.push({ nodes: document.querySelectorAll('*').length, timers: vi.getTimerCount(), streams: gateway.streams.size });
    }
  }
  const [, early, ...later] = measured;
  expect(later).toHaveLength(22);
  for (const one of later) {
    expect(one.streams).toBe(1);
    expect(one.nodes).toBeLessThanOrEqual((early?.nodes ?? 0) + 5);
    expect(one.timers).toBeLessThanOrEqual((early?.timers ?? 0) + 2);
  }
  expect(page.element.querySelector('time')?.dateTime.slice(0, 10)).toBe('2030-01-16');
});

test('a wall says at once that it is not of now, for how long, and no longer once it is', async () => {
  await show();
  expect(alarm()).toBe('');
  gateway.away = true;
  gateway.cutAll();
  await pass(100);
  expect(alarm()).toMatch(/^Reconnecting, as of .*(cannot be reached|ended)/);
  await pass(5 * minute);
  expect(alarm()).toContain('(for 5 minutes)');
  gateway.away = false;
  await pass(2 * minute);
  expect(alarm()).toBe('');
  page.unmount();
  expect(document.documentElement.dataset.wall).toBeUndefined();
  await show();
});

test('what the gateway only begins to read is no loss of the cluster', async () => {
  await show();
  const begun = gateway.fault.stale('starting');
  await pass(100);
  await pass(2_000);
  expect(alarm()).toBe('');
  expect(page.element.querySelector('[data-dated]')).toBeNull();
  begun();
  gateway.fault.stale('unreachable');
  await pass(100);
  await pass(2_000);
  expect(alarm()).toMatch(/^Stale since .*lost its connection/);
  expect(page.element.querySelector('[data-dated]')).not.toBeNull();
});

test('a wall names its cluster where the gateway serves several', async () => {
  const heading = async (hash: string, clusters?: readonly string[]): Promise<string | null | undefined> => {
    page?.unmount();
    await show(hash, clusters);
    return page.element.querySelector('h1')?.textContent;
  };
  expect(await heading('#overview?tab=wall')).toBe('Overview');
  expect(await heading('#overview?tab=wall', ['east', 'west'])).toBe('Overview · east');
  expect(await heading('#overview?tab=wall&cluster=west&ns=team-a', ['east', 'west'])).toBe('team-a · west');
});
