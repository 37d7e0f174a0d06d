import { KubecastProvider } from '@kubecast/sdk/react';
import type { Kubecast } from '@kubecast/sdk';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { jobRow, type Job } from './job.ts';
import { WithPast } from './past.tsx';
import { State } from './State.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const show = async (status: Job['status'], ...items: object[]): Promise<void> => {
  await ask(status);
  server.last.refuse(200, {}, JSON.stringify({ items }));
  await pass();
};
const pass = (): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(0));
const ask = async (status: Job['status']): Promise<void> => {
  const row = jobRow({ metadata: { uid: 'a', name: 'a', namespace: 'n' }, ...(status && { status }) });
  page = render(
    <KubecastProvider client={kc}>
      <WithPast namespace="n">
        <State row={row} />
      </WithPast>
    </KubecastProvider>,
  );
  await pass();
};
const detail = (): string | undefined => page.element.querySelector('.state-detail')?.textContent ?? undefined;
const pointedAt = (): string => page.element.querySelector('.state-mark')?.getAttribute('title') ?? '';

const gaveUp = { failed: 1, conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }] };
const outOfMemory = { reason: 'OOMKilled', text: 'main was OOM-killed (exit 137) on gpu-07' };

test('a job that failed says in the table why, and what its controller makes of that when it is pointed at', async () => {
  await show(gaveUp, { uid: 'a', state: 'Failed', reason: 'BackoffLimitExceeded', cause: outOfMemory });
  expect(detail()).toBe(outOfMemory.text);
  expect(pointedAt()).toBe(`Failed · ${outOfMemory.text} · BackoffLimitExceeded · Job has reached the specified backoff limit`);
});

test('no reason of a failure is shown that the answer takes back: until it comes there is none', async () => {
  await ask(gaveUp);
  expect([detail(), page.element.textContent]).toEqual([undefined, 'Failed']);
  server.last.refuse(503, {}, '{}');
  await pass();
  expect(detail()).toBe('No retries left');
});

test('until the history knows why, and where it knows nothing of the job, it is what the object says, in words, and in its own when it is pointed at', async () => {
  const words = 'No retries left';
  await show(gaveUp, { uid: 'a', state: 'Running', reason: '', cause: outOfMemory });
  expect(detail()).toBe(words);
  page.unmount();
  await show(gaveUp);
  expect(detail()).toBe(words);
  expect(pointedAt()).toBe(`Failed · ${words} · BackoffLimitExceeded · Job has reached the specified backoff limit`);
  page.unmount();
  await show(gaveUp, { uid: 'a', state: 'Failed', reason: 'BackoffLimitExceeded' });
  expect(detail()).toBe(words);
});

test('a reason that nobody has words for is told once, as it is', async () => {
  await show({ failed: 1, conditions: [{ type: 'Failed', status: 'True', reason: 'OutOfLuck', message: 'so it is' }] });
  expect([detail(), pointedAt()]).toEqual(['OutOfLuck', 'Failed · OutOfLuck · so it is']);
});

test('a job that waits says for what, in words', async () => {
  const message = '0/10 nodes are available: 9 Insufficient nvidia.com/gpu.';
  const at = new Date().toISOString();
  await show({ active: 1, ready: 0 }, { uid: 'a', state: 'Pending', reason: 'Unschedulable', message, reasons: [{ at, reason: 'Unschedulable', message, text: 'no node fits: too little nvidia.com/gpu free (9 of 10)' }] });
  expect(detail()).toBe('Unschedulable: no node fits: too little nvidia.com/gpu free (9 of 10)');
});

test('a job that tries again says how often it failed, and why', async () => {
  await show({ active: 1, ready: 0, failed: 2 }, { uid: 'a', state: 'Retrying', reason: '', cause: outOfMemory });
  expect(detail()).toBe(`2 failed · ${outOfMemory.text}`);
});
