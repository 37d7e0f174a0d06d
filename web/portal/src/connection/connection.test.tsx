import { afterEach, expect, test, vi } from 'vitest';
import type { ConnectionState } from '@kubecast/sdk';
import { render, type Rendered } from '../../../mock/render.ts';
import { ConnectionStatus } from './ConnectionStatus.tsx';
import { describe as put } from './describe.ts';

const state = (change: Partial<ConnectionState>): ConnectionState => ({
  phase: 'live',
  since: 0,
  reason: '',
  message: '',
  retryAt: undefined,
  ...change,
});

test.each<[Partial<ConnectionState>, string, string]>([
  [{}, 'live', 'Live'],
  [{ phase: 'connecting' }, 'waiting', 'Connecting…'],
  [{ phase: 'stale', reason: 'watch-lost' }, 'stale', 'Stale since T'],
  [{ phase: 'stale', reason: 'starting' }, 'waiting', 'Loading…'],
  [{ phase: 'reconnecting', reason: 'network' }, 'lost', 'Reconnecting, as of T'],
  [{ phase: 'paused', reason: 'caller' }, 'waiting', 'Paused, as of T'],
  [{ phase: 'denied', reason: 'http:401' }, 'lost', 'Signed out'],
  [{ phase: 'denied', reason: 'http:403' }, 'lost', 'Not allowed'],
  [{ phase: 'closed', reason: 'http:404' }, 'lost', 'Disconnected'],
])('%j is %s: %s', (change, tone, label) => {
  expect(put(state(change), () => 'T')).toMatchObject({ tone, label });
});

test.each(['ended', 'network', 'silent', 'timeout', 'goodbye:drain', 'goodbye:limit', 'token'])('%s is put in words', (reason) => {
  const { detail } = put(state({ phase: 'reconnecting', reason, message: 'TypeError: fetch failed' }), () => 'T');
  expect(detail).toMatch(/^[A-Z].+\.$/);
  expect(detail).not.toContain('TypeError');
});

test('a reason nobody has foreseen is told in the words it came with', () => {
  expect(put(state({ phase: 'reconnecting', reason: 'http:502', message: 'HTTP 502 Bad Gateway' }), () => 'T').detail).toBe('HTTP 502 Bad Gateway');
});

test('rows that are being fetched anew are not live, however good the connection is', () => {
  expect(put(state({}), () => 'T', true)).toMatchObject({ tone: 'waiting', label: 'Catching up…' });
  expect(put(state({ phase: 'stale' }), () => 'T', true)).toMatchObject({ label: 'Stale since T' });
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

  current = state({ phase: 'reconnecting', reason: 'network', since: Date.now(), retryAt: Date.now() + 5_000 });
  shown.act(tell);
  const said = status?.textContent;
  expect(said).toMatch(/^Reconnecting, as of /);
  shown.act(() => vi.advanceTimersByTime(2_500));
  expect(shown.element.textContent).toContain('again in 3s');
  expect(status?.textContent).toBe(said);
  shown.act(() => shown.button('Try now').click());
  expect(onRetry).toHaveBeenCalledOnce();
});
