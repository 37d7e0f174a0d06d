import { afterEach, expect, test, vi } from 'vitest';
import type { ConnectionState } from '@kubecast/sdk';
import { render, type Rendered } from '../../../mock/render.ts';
import { ConnectionStatus } from './ConnectionStatus.tsx';
import { describe as put } from './describe.ts';

const state = (change: Partial<ConnectionState>): ConnectionState => ({
  status: 'live',
  reason: undefined,
  asOf: undefined,
  error: undefined,
  retryAt: undefined,
  ...change,
});

const lost = (reason: string, message = ''): Partial<ConnectionState> => ({ status: 'stale', reason: 'reconnecting', asOf: 0, error: { reason, message } });

test.each<[Partial<ConnectionState>, string, string]>([
  [{}, 'live', 'Live'],
  [{ status: 'loading' }, 'waiting', 'Connecting…'],
  [{ status: 'stale', reason: 'unreachable', asOf: 0 }, 'stale', 'Stale since T'],
  [{ status: 'stale', reason: 'starting', asOf: 0 }, 'waiting', 'Loading…'],
  [lost('network'), 'lost', 'Reconnecting, as of T'],
  [{ status: 'stale', reason: 'paused', asOf: 0 }, 'waiting', 'Paused, as of T'],
  [{ status: 'stale', reason: 'paused' }, 'waiting', 'Connecting…'],
  [{ status: 'denied', error: { reason: 'http:401', message: '' } }, 'lost', 'Signed out'],
  [{ status: 'denied', error: { reason: 'http:403', message: '' } }, 'lost', 'Not allowed'],
  [{ status: 'failed', error: { reason: 'http:404', message: '' } }, 'lost', 'Disconnected'],
])('%j is %s: %s', (change, tone, label) => {
  expect(put(state(change), () => 'T')).toMatchObject({ tone, label });
});

test.each(['ended', 'network', 'silent', 'timeout', 'goodbye:drain', 'goodbye:limit', 'token'])('%s is put in words', (reason) => {
  const { detail } = put(state(lost(reason, 'TypeError: fetch failed')), () => 'T');
  expect(detail).toMatch(/^[A-Z].+\.$/);
  expect(detail).not.toContain('TypeError');
});

test('a reason nobody has foreseen is told in the words it came with', () => {
  expect(put(state(lost('http:502', 'HTTP 502 Bad Gateway')), () => 'T').detail).toBe('HTTP 502 Bad Gateway');
});

test('rows that are being fetched anew are not live, however good the connection is', () => {
  expect(put(state({}), () => 'T', true)).toMatchObject({ tone: 'waiting', label: 'Catching up…' });
  expect(put(state({ status: 'stale', reason: 'unreachable', asOf: 0 }), () => 'T', true)).toMatchObject({ label: 'Stale since T' });
});

let page: Rendered | undefined;

afterEach(() => {
  page?.unmount();
  vi.useRealTimers();
});

test('the countdown to the next attempt is not part of what is read out', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) }); // the page's clock ticks on the second
  let current = state({});
  let tell = (): void => undefined;
  const subscribe = (listener: () => void) => {
    tell = listener;
    return () => undefined;
  };
  const onRetry = vi.fn();
  const shown = render(<ConnectionStatus connection={{ subscribe, getSnapshot: () => current }} rows={undefined} onRetry={onRetry} />);
  page = shown;
  const status = shown.element.querySelector('[role=status]');
  expect(status?.textContent).toBe('Live');
  expect(shown.element.querySelector('button')).toBeNull();

  current = state({ ...lost('network'), asOf: Date.now(), retryAt: Date.now() + 5_000 });
  shown.act(tell);
  const said = status?.textContent;
  expect(said).toMatch(/^Reconnecting, as of /);
  shown.act(() => vi.advanceTimersByTime(2_500));
  expect(shown.element.textContent).toContain('again in 3s');
  expect(status?.textContent).toBe(said);
  shown.act(() => shown.button('Try now').click());
  expect(onRetry).toHaveBeenCalledOnce();
});
